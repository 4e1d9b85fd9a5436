// Lines by key, none of them known beforehand: an open-addressing index from hashes to lines that keep their numbers.
#pragma once

#include "state.hpp"

namespace yardstick {

inline std::uint32_t hash_of(std::int64_t key) { return static_cast<std::uint32_t>(mix(key)); }

// A line has a `key` and says whether it is `empty()`. Empty lines leave when the index is half full, and it then gets three
// to six places for each that stays: so it is bounded by what is in use, however many keys come by.
template <class Line>
class Lines {
public:
    Lines() { make_index(0); }

    Line& operator[](std::uint32_t number) { return lines_[number]; }
    const Line& operator[](std::uint32_t number) const { return lines_[number]; }
    // Lines in use or free.
    std::int64_t size() const { return static_cast<std::int64_t>(lines_.size()); }
    std::int64_t bytes() const { return bytes_of(slots_) + bytes_of(lines_) + bytes_of(free_); }

    // For so many new keys no line will leave.
    void make_room(std::int64_t more) {
        if (2 * (used_ + more) > static_cast<std::int64_t>(slots_.size())) rebuild(more);
    }

    // Have a key's place in the index come nearer.
    void expect(std::int64_t key) const { __builtin_prefetch(&slots_[hash_of(key) & mask_]); }

    // The line of a key, a new one if it has none. It may be gone at the next call if it is empty then.
    std::uint32_t number_of(std::int64_t key) {
        const std::uint32_t hash = hash_of(key), at = slot_of(key, hash);
        return slots_[at].number != none ? slots_[at].number : add(key, hash, at);
    }

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    static constexpr std::size_t most = none / 2;
    static constexpr std::int64_t smallest = 16;
    struct Slot {
        std::uint32_t hash = 0, number = none;
    };

    // Where a key's line stands in the index, or will stand.
    std::uint32_t slot_of(std::int64_t key, std::uint32_t hash) const {
        std::uint32_t at = hash & mask_;
        while (slots_[at].number != none && (slots_[at].hash != hash || lines_[slots_[at].number].key != key)) at = (at + 1) & mask_;
        return at;
    }

    [[gnu::noinline]] std::uint32_t add(std::int64_t key, std::uint32_t hash, std::uint32_t at) {
        if (2 * (used_ + 1) > static_cast<std::int64_t>(slots_.size())) {
            rebuild(1);
            at = vacant(hash);
        }
        if (free_.empty()) {
            if (lines_.size() == most) throw std::length_error("too many keys");
            free_.push_back(static_cast<std::uint32_t>(lines_.size()));
            lines_.emplace_back();
        }
        const std::uint32_t number = free_.back();
        free_.pop_back();
        lines_[number] = Line();
        lines_[number].key = key;
        slots_[at] = {hash, number};
        ++used_;
        return number;
    }

    void rebuild(std::int64_t more) {
        const std::vector<Slot> old = std::move(slots_);
        std::int64_t live = 0;
        for (const Slot& slot : old) live += slot.number != none && !lines_[slot.number].empty();
        make_index(live + more);
        for (const Slot& slot : old) {
            if (slot.number == none) continue;
            if (lines_[slot.number].empty())
                free_.push_back(slot.number);
            else
                slots_[vacant(slot.hash)] = slot;
        }
        used_ = live;
    }

    void make_index(std::int64_t lines) {
        slots_.assign(power_of_two(std::max(smallest, 3 * lines)), Slot());
        mask_ = static_cast<std::uint32_t>(slots_.size() - 1);
    }

    std::uint32_t vacant(std::uint32_t hash) const {
        std::uint32_t at = hash & mask_;
        while (slots_[at].number != none) at = (at + 1) & mask_;
        return at;
    }

    std::vector<Slot> slots_;
    std::uint32_t mask_ = 0;
    std::int64_t used_ = 0;  // slots
    std::vector<Line> lines_;
    std::vector<std::uint32_t> free_;
};

}  // namespace yardstick
