#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#include "seeded.hpp"

TEST_CASE("one and one is two, [always]", "[plain]") { CHECK(1 + 1 == 2); }
TEST_CASE("counter: loses nothing") {
    int seen = counted();
    REQUIRE(seen == 2);
}
TEST_CASE("account: transfers both ways") { REQUIRE(transferred() == 20); }
TEST_CASE("box: is full") { CHECK(taken() == 7); }
TEST_CASE("hidden", "[.]") { CHECK(false); }
