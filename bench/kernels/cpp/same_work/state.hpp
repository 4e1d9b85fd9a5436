// What the yardsticks of the same work share: sizes of what they keep, and windows that count.
#pragma once

#include "../yardstick.hpp"

namespace yardstick {

template <class Value>
std::int64_t bytes_of(const std::vector<Value>& values) {
    return static_cast<std::int64_t>(values.capacity() * sizeof(Value));
}

// The lines of the last mappings of an input, by age.
class CountWindow {
public:
    static constexpr std::uint32_t nobody = ~std::uint32_t{0};

    explicit CountWindow(std::int64_t size) : lines_(size, nobody) {}

    std::int64_t bytes() const { return bytes_of(lines_); }
    // The line of the mapping that leaves next, or nobody.
    std::uint32_t oldest() const { return lines_[slot_]; }
    std::size_t slot() const { return slot_; }
    void replace(std::uint32_t line) {
        lines_[slot_] = line;
        if (++slot_ == lines_.size()) slot_ = 0;
    }

private:
    std::vector<std::uint32_t> lines_;
    std::size_t slot_ = 0;
};

}  // namespace yardstick

// YARDSTICK, and how many bytes its state has.
#define SAME_WORK(Class) \
    YARDSTICK(Class)     \
    extern "C" std::int64_t bytes(const void* self) { return static_cast<const Class*>(self)->bytes(); }
