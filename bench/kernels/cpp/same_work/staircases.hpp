// Values that are smallest at some time to come, by when they go: the last one is the smallest and the first to go.
#pragma once

#include "arena.hpp"

namespace yardstick {

struct Staircase {
    std::uint32_t first = 0, height = 0, capacity = 0;
};

struct Step {
    std::int64_t value;
    std::int64_t until;  // the number of the arrival with which it goes
};

class Staircases {
public:
    std::int64_t bytes() const { return steps_.bytes(); }

    // Of a staircase with steps: the smallest value, and when it goes.
    const Step& top(const Staircase& stairs) const { return steps_[stairs.first][stairs.height - 1]; }

    // Those that go with an arrival.
    void leave(Staircase& stairs, std::int64_t arrival) {
        while (stairs.height > 0 && top(stairs).until <= arrival) --stairs.height;
        if (stairs.height <= stairs.capacity / 8) shrink(stairs);
    }

    // Whether the top is a new one.
    bool add(Staircase& stairs, const Step& step) {
        const Step* steps = steps_[stairs.first];
        std::uint32_t low = stairs.height;
        while (low > 0 && steps[low - 1].until < step.until) --low;
        if (low > 0 && steps[low - 1].value <= step.value) return false;
        if (low > 0 && steps[low - 1].until == step.until) --low;
        std::uint32_t high = low;
        while (high < stairs.height && steps[high].value >= step.value) ++high;
        put(stairs, low, high, step);
        return low + 1 == stairs.height;
    }

private:
    static constexpr std::uint32_t smallest = 4;

    // Instead of the steps from `low` on before `high`.
    void put(Staircase& stairs, std::uint32_t low, std::uint32_t high, const Step& step) {
        const std::uint32_t height = stairs.height + 1 + low - high;
        if (height > stairs.capacity) resize(stairs, std::max(smallest, 2 * stairs.capacity));
        Step* steps = steps_[stairs.first];
        std::memmove(steps + low + 1, steps + high, (stairs.height - high) * sizeof(Step));
        steps[low] = step;
        stairs.height = height;
    }

    void shrink(Staircase& stairs) {
        if (stairs.height > 0) return resize(stairs, stairs.capacity / 2);
        if (stairs.capacity > 0) steps_.release(stairs.first, stairs.capacity);
        stairs = Staircase();
    }

    [[gnu::noinline]] void resize(Staircase& stairs, std::uint32_t capacity) {
        const std::uint32_t first = steps_.allocate(capacity);
        std::copy_n(steps_[stairs.first], stairs.height, steps_[first]);
        if (stairs.capacity > 0) steps_.release(stairs.first, stairs.capacity);
        stairs = {first, stairs.height, capacity};
    }

    Arena<Step> steps_;
};

}  // namespace yardstick
