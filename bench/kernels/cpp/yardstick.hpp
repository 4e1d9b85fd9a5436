// What the yardsticks in C++ share: arrivals, results, an open-addressing table, rings of fixed size, and how Python
// calls them. Each .cpp beside this header has one class and becomes one shared library (library.py).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

namespace yardstick {

// An id is a tag above the bits of a value (cqels_py/dictionary/layout.py); only numbers are ever looked into.
constexpr int value_bits = 56;
inline std::int64_t number(std::int64_t id) { return id & ((std::int64_t{1} << value_bits) - 1); }

struct Setting {
    std::int64_t window;  // mappings in each input's window
    std::int64_t inputs;
    std::int64_t keys;    // how many different ones there are
    std::int64_t groups;  // how many different values of the first input
    std::int64_t values;  // how many different values of the last input
    std::int64_t most;    // more mappings than a key ever has in a window: a power of two

    std::int64_t arrivals_in_windows() const { return inputs * window; }
};

struct Batch {
    const std::int32_t* port;
    const std::int64_t* key;
    const std::int64_t* value;
    std::int64_t rows;
    std::int64_t before;  // arrivals before this batch
};

// A buffer of results by columns: the arrival that made each, its cells, and, where results are withdrawn too, its sign.
template <class Cell>
struct Results {
    std::int32_t* tick;
    Cell* cells;
    std::int64_t room;
    std::int64_t made;
    std::int8_t* sign;

    bool has_room(std::int64_t more) const { return made + more <= room; }
    Cell* column(std::int64_t number) const { return cells + number * room; }

    template <class... Values>
    void add(std::int64_t row, Values... values) {
        tick[made] = static_cast<std::int32_t>(row);
        Cell* cell = cells + made;
        ((*cell = values, cell += room), ...);
        ++made;
    }
    template <class... Values>
    void change(std::int64_t row, int by, Values... values) {
        sign[made] = static_cast<std::int8_t>(by);
        add(row, values...);
    }
};

inline std::uint64_t mix(std::int64_t id) {
    std::uint64_t x = static_cast<std::uint64_t>(id) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
}

inline std::int64_t power_of_two(std::int64_t least) {
    std::int64_t size = 1;
    while (size < least) size *= 2;
    return size;
}

// A place for each key, found by hashing; at most half of them are taken. Keys never leave, and none is 0.
template <class Line>
class Table {
public:
    explicit Table(std::int64_t keys) : lines_(power_of_two(2 * keys)), mask_(lines_.size() - 1) {}

    std::int64_t size() const { return static_cast<std::int64_t>(lines_.size()); }
    Line& operator[](std::int64_t place) { return lines_[place]; }
    const Line& operator[](std::int64_t place) const { return lines_[place]; }

    // Have a key's line come nearer.
    void expect(std::int64_t key) const { __builtin_prefetch(&lines_[mix(key) & mask_]); }
    std::int64_t place_of(std::int64_t key) {
        std::uint64_t place = mix(key) & mask_;
        while (lines_[place].key != key && lines_[place].key != 0) place = (place + 1) & mask_;
        lines_[place].key = key;
        return static_cast<std::int64_t>(place);
    }

private:
    std::vector<Line> lines_;
    std::uint64_t mask_;
};

// Where the values of a key stand in its circular run of `most` cells.
struct Ring {
    std::int64_t head = 0;
    std::int64_t count = 0;
};

// The runs themselves: `most` cells for each ring.
template <class Cell>
class Runs {
public:
    Runs(std::int64_t rings, std::int64_t most) : cells_(rings * most), most_(most) {}

    Cell at(std::int64_t run, const Ring& ring, std::int64_t i) const {
        return cells_[run * most_ + ((ring.head + i) & (most_ - 1))];
    }
    void push(std::int64_t run, Ring& ring, Cell cell) {
        if (ring.count == most_) throw std::runtime_error("more mappings of one key than there is room for");
        cells_[run * most_ + ((ring.head + ring.count) & (most_ - 1))] = cell;
        ++ring.count;
    }
    void pop(Ring& ring) const {
        ring.head = (ring.head + 1) & (most_ - 1);
        --ring.count;
    }
    // Have the oldest cells of a ring come nearer.
    void expect(std::int64_t run, const Ring& ring) const {
        const Cell* oldest = cells_.data() + run * most_ + ring.head;
        __builtin_prefetch(oldest);
        __builtin_prefetch(oldest + 8);
    }
    // All cells of a ring in two straight runs.
    void copy(std::int64_t run, const Ring& ring, Cell* to) const {
        const Cell* first = cells_.data() + run * most_;
        const std::int64_t straight = std::min(ring.count, most_ - ring.head);
        std::copy_n(first, ring.count - straight, std::copy_n(first + ring.head, straight, to));
    }

private:
    std::vector<Cell> cells_;
    std::int64_t most_;
};

}  // namespace yardstick

// What Python calls: `take` goes on from row `from`, and gives the row before which the buffer had no more room (the
// number of rows at the end), or -1 after an exception.
#define YARDSTICK(Class)                                                                                             \
    extern "C" void* create(const yardstick::Setting* setting) {                                                     \
        try {                                                                                                        \
            return new Class(*setting);                                                                              \
        } catch (const std::exception&) {                                                                            \
            return nullptr;                                                                                          \
        }                                                                                                            \
    }                                                                                                                \
    extern "C" void destroy(void* self) { delete static_cast<Class*>(self); }                                        \
    extern "C" std::int64_t take(                                                                                    \
        void* self, const yardstick::Batch* batch, std::int64_t from, yardstick::Results<Class::Cell>* results) {    \
        try {                                                                                                        \
            return static_cast<Class*>(self)->take(*batch, from, *results);                                          \
        } catch (const std::exception&) {                                                                            \
            return -1;                                                                                               \
        }                                                                                                            \
    }
