// What a key has in a window, oldest first: a circular run that grows and shrinks with it.
#pragma once

#include "arena.hpp"

namespace yardstick {

struct GrowingRing {
    std::uint32_t first = 0, head = 0, count = 0, capacity = 0;
};

template <class Cell>
class GrowingRings {
public:
    std::int64_t bytes() const { return arena_.bytes(); }

    const Cell& at(const GrowingRing& ring, std::uint32_t i) const {
        return arena_[ring.first][(ring.head + i) & (ring.capacity - 1)];
    }

    // Have the oldest cells come nearer.
    void expect(const GrowingRing& ring) const {
        const Cell* oldest = arena_[ring.first] + ring.head;
        __builtin_prefetch(oldest);
        __builtin_prefetch(oldest + 8);
    }

    void push(GrowingRing& ring, const Cell& cell) {
        if (ring.count == ring.capacity) resize(ring, std::max(smallest, 2 * ring.capacity));
        arena_[ring.first][(ring.head + ring.count) & (ring.capacity - 1)] = cell;
        ++ring.count;
    }
    Cell pop(GrowingRing& ring) {
        const Cell cell = at(ring, 0);
        ring.head = (ring.head + 1) & (ring.capacity - 1);
        --ring.count;
        if (ring.count <= ring.capacity / 8) shrink(ring);
        return cell;
    }
    // All cells in two straight runs.
    void copy(const GrowingRing& ring, Cell* to) const {
        const Cell* first = arena_[ring.first];
        const std::uint32_t straight = std::min(ring.count, ring.capacity - ring.head);
        std::copy_n(first, ring.count - straight, std::copy_n(first + ring.head, straight, to));
    }
    // The same one by one, which is sooner done where there are a few.
    void copy_few(const GrowingRing& ring, Cell* to) const {
        const Cell* first = arena_[ring.first];
        for (std::uint32_t i = 0; i < ring.count; ++i) to[i] = first[(ring.head + i) & (ring.capacity - 1)];
    }

private:
    static constexpr std::uint32_t smallest = 4;

    void shrink(GrowingRing& ring) {
        if (ring.count > 0) return resize(ring, ring.capacity / 2);
        arena_.release(ring.first, ring.capacity);
        ring = GrowingRing();
    }

    [[gnu::noinline]] void resize(GrowingRing& ring, std::uint32_t capacity) {
        const std::uint32_t first = arena_.allocate(capacity);
        copy(ring, arena_[first]);
        if (ring.capacity > 0) arena_.release(ring.first, ring.capacity);
        ring = {first, 0, ring.count, capacity};
    }

    Arena<Cell> arena_;
};

}  // namespace yardstick
