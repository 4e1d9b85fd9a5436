// How often each key is there, none of them known beforehand: an open-addressing table that keys leave when their last one does.
#pragma once

#include "state.hpp"

namespace yardstick {

// At most half of the table is taken, and no less than a sixteenth.
template <class Key>
class Bag {
public:
    Bag() : slots_(smallest) {}

    std::int64_t bytes() const { return bytes_of(slots_); }

    // Have what add and remove will look at come nearer.
    void expect(std::uint32_t hash) const {
        const Slot& slot = slots_[hash & mask()];
        __builtin_prefetch(&slot);
        __builtin_prefetch(&slot.count);  // which may stand in another line of the cache
    }

    // Whether it is the first of its key.
    bool add(const Key& key, std::uint32_t hash) {
        Slot* slot = &slots_[find(key, hash)];
        if (slot->count++ > 0) return false;
        slot->key = key;
        slot->hash = hash;
        if (2 * ++used_ > slots_.size()) rehash();
        return true;
    }

    // Whether it was the last of its key.
    bool remove(const Key& key, std::uint32_t hash) {
        const std::uint32_t at = find(key, hash);
        if (--slots_[at].count > 0) return false;
        close(at);
        if (16 * --used_ < slots_.size() && slots_.size() > smallest) rehash();
        return true;
    }

private:
    static constexpr std::size_t smallest = 64;
    struct Slot {
        Key key{};
        std::uint32_t hash = 0;
        std::uint32_t count = 0;
    };

    std::uint32_t mask() const { return static_cast<std::uint32_t>(slots_.size() - 1); }

    std::uint32_t find(const Key& key, std::uint32_t hash) const {
        std::uint32_t at = hash & mask();
        while (slots_[at].count > 0 && !(slots_[at].key == key)) at = (at + 1) & mask();
        return at;
    }

    // What follows a slot that has become free, and belongs before, moves up.
    void close(std::uint32_t hole) {
        for (std::uint32_t at = (hole + 1) & mask(); slots_[at].count > 0; at = (at + 1) & mask()) {
            if (((at - slots_[at].hash) & mask()) < ((at - hole) & mask())) continue;
            slots_[hole] = slots_[at];
            hole = at;
        }
        slots_[hole].count = 0;
    }

    [[gnu::noinline]] void rehash() {
        std::vector<Slot> slots(power_of_two(std::max(smallest, 3 * used_)));
        slots.swap(slots_);
        for (const Slot& slot : slots) {
            if (slot.count == 0) continue;
            slots_[find(slot.key, slot.hash)] = slot;
        }
    }

    std::vector<Slot> slots_;
    std::size_t used_ = 0;
};

}  // namespace yardstick
