#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE seeded
#include <boost/test/unit_test.hpp>

#include "seeded.hpp"

BOOST_AUTO_TEST_CASE(adds) { BOOST_TEST(1 + 1 == 2); }
BOOST_AUTO_TEST_SUITE(shared)
BOOST_AUTO_TEST_CASE(counter_loses_nothing) {
    int seen = counted();
    BOOST_TEST(seen == 2);
}
BOOST_AUTO_TEST_CASE(account_transfers_both_ways) { BOOST_REQUIRE_EQUAL(transferred(), 20); }
BOOST_AUTO_TEST_CASE(box_is_full) { BOOST_TEST(taken() == 7); }
BOOST_AUTO_TEST_CASE(disabled, *boost::unit_test::disabled()) { BOOST_TEST(false); }
BOOST_AUTO_TEST_SUITE_END()
