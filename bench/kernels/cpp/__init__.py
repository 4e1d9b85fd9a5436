"""The yardsticks in plain C++, built with g++ when first needed."""
