"""The yardsticks in plain C++, built with g++ when they are first asked for."""
