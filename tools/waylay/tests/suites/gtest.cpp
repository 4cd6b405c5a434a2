#include <gtest/gtest.h>

#include "seeded.hpp"

TEST(Arithmetic, Adds) { EXPECT_EQ(1 + 1, 2); }
TEST(Counter, LosesNothing) {
    EXPECT_EQ(counted(), 2);
}
TEST(Account, TransfersBothWays) { EXPECT_EQ(transferred(), 20); }
TEST(Box, IsFull) { EXPECT_EQ(taken(), 7); }
TEST(Box, DISABLED_IsNotRun) { FAIL(); }
class Odd : public testing::TestWithParam<int> {};
TEST_P(Odd, IsOdd) { EXPECT_EQ(GetParam() % 2, 1); }
INSTANTIATE_TEST_SUITE_P(Small, Odd, testing::Values(1, 3));
