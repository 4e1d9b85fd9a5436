// Runs of cells in one growing array, their lengths powers of two; free ones are linked through their first cells.
#pragma once

#include <cstring>

#include "state.hpp"

namespace yardstick {

template <class Cell>
class Arena {
public:
    Arena() { std::fill_n(free_, sizes, none); }

    Cell* operator[](std::uint32_t first) { return cells_.data() + first; }
    const Cell* operator[](std::uint32_t first) const { return cells_.data() + first; }
    std::int64_t bytes() const { return bytes_of(cells_); }

    // Where a run of `length` cells begins. Cells may move.
    std::uint32_t allocate(std::uint32_t length) {
        std::uint32_t& free = free_[size_of(length)];
        if (free != none) {
            const std::uint32_t first = free;
            std::memcpy(&free, &cells_[first], sizeof free);
            return first;
        }
        const std::size_t first = cells_.size();
        if (first + length >= none) throw std::length_error("an arena is full");
        if (first + length > cells_.capacity()) cells_.reserve(2 * (first + length));
        cells_.resize(first + length);
        return static_cast<std::uint32_t>(first);
    }

    void release(std::uint32_t first, std::uint32_t length) {
        std::uint32_t& free = free_[size_of(length)];
        std::memcpy(&cells_[first], &free, sizeof free);
        free = first;
    }

private:
    static constexpr int sizes = 32;
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    static int size_of(std::uint32_t length) { return __builtin_ctz(length); }

    std::vector<Cell> cells_;
    std::uint32_t free_[sizes];  // by log2 of the length
};

}  // namespace yardstick
