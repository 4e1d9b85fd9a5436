// What both yardsticks of the chain join (a, b), (b, c), (c, d) share. Results: a, b, c, d.
#pragma once

#include "yardstick.hpp"

namespace yardstick {

// The halves of a chain mirror each other. One has a line for each b, the other for each c; at a line stand its ends (a's or
// d's) and its partners: lines of the other half, one for each mapping (b, c), which so stands in both.
// `withdraws`: the results of a mapping that leaves are delivered once more, with the other sign.
template <class Half, bool withdraws = false>
class ChainJoin {
public:
    using Cell = std::int64_t;
    using Line = typename Half::Number;

    explicit ChainJoin(const Setting& setting) : halves_{Half(setting), Half(setting)} {}

    Half& half(int side) { return halves_[side]; }
    const Half& half(int side) const { return halves_[side]; }

    // Whether the results of an arrival had room; else nothing has happened.
    bool take(const Batch& batch, std::int64_t row, Results<Cell>& out) {
        const int port = batch.port[row];
        if (port == 1) return take_middle(row, batch.key[row], batch.value[row], out);
        return take_end(row, port / 2, batch.key[row], batch.value[row], out);
    }

private:
    bool take_end(std::int64_t row, int side, Cell key, Cell end, Results<Cell>& out) {
        Half& near = halves_[side];
        const Line line = near.line_of(key);
        std::int64_t results = of_end(side, line);
        if constexpr (withdraws)
            if (near.has_oldest_end()) results += of_end(side, near.oldest_end());
        if (!out.has_room(results)) return false;
        if constexpr (withdraws)
            if (near.has_oldest_end()) {
                const Line oldest = near.oldest_end();
                deliver_end(row, -1, side, near.end(oldest, 0), near.key(oldest), oldest, out);
            }
        deliver_end(row, 1, side, end, key, line, out);
        near.enter_end(line, end);
        return true;
    }

    bool take_middle(std::int64_t row, Cell b, Cell c, Results<Cell>& out) {
        Half &by_b = halves_[0], &by_c = halves_[1];
        const Line b_line = by_b.line_of(b), c_line = by_c.line_of(c);
        std::int64_t results = by_b.ends(b_line) * by_c.ends(c_line);
        if constexpr (withdraws)
            if (by_b.has_oldest_partner()) results += by_b.ends(by_b.oldest_partner()) * by_c.ends(by_c.oldest_partner());
        if (!out.has_room(results)) return false;
        if constexpr (withdraws)
            if (by_b.has_oldest_partner()) deliver_middle(row, -1, by_b.oldest_partner(), by_c.oldest_partner(), out);
        deliver_middle(row, 1, b_line, c_line, out);
        by_b.enter_partner(b_line, c_line);
        by_c.enter_partner(c_line, b_line);
        return true;
    }

    // How many results an end at a line has.
    std::int64_t of_end(int side, Line line) const {
        const Half &near = halves_[side], &far = halves_[1 - side];
        const std::int64_t partners = near.partners(line);
        std::int64_t results = 0;
        for (std::int64_t i = 0; i < partners; ++i) {
            const Line partner = near.partner(line, i);
            results += far.ends(partner);
            far.expect_ends(partner);
        }
        return results;
    }

    void deliver_end(std::int64_t row, int sign, int side, Cell end, Cell key, Line line, Results<Cell>& out) const {
        const Half& near = halves_[side];
        const std::int64_t partners = near.partners(line);
        for (std::int64_t i = 0; i < partners; ++i) deliver(row, sign, side, end, key, near.partner(line, i), out);
    }

    void deliver_middle(std::int64_t row, int sign, Line b_line, Line c_line, Results<Cell>& out) const {
        const Half& by_b = halves_[0];
        const std::int64_t ends = by_b.ends(b_line);
        for (std::int64_t i = 0; i < ends; ++i) deliver(row, sign, 0, by_b.end(b_line, i), by_b.key(b_line), c_line, out);
    }

    // An end and its key, with all ends at a line of the other half.
    void deliver(std::int64_t row, int sign, int side, Cell end, Cell key, Line line, Results<Cell>& out) const {
        const Half& far = halves_[1 - side];
        const std::int64_t count = far.ends(line);
        const Cell far_key = far.key(line);
        std::int32_t* to_tick = out.tick + out.made;
        std::int8_t* to_sign = out.sign + out.made;
        Cell* to_end = out.column(side == 0 ? 0 : 3) + out.made;
        Cell* to_key = out.column(side == 0 ? 1 : 2) + out.made;
        Cell* to_far_key = out.column(side == 0 ? 2 : 1) + out.made;
        Cell* to_far_end = out.column(side == 0 ? 3 : 0) + out.made;
        out.made += count;
        if (count >= few) {
            std::fill_n(to_tick, count, static_cast<std::int32_t>(row));
            if (withdraws) std::fill_n(to_sign, count, static_cast<std::int8_t>(sign));
            std::fill_n(to_end, count, end);
            std::fill_n(to_key, count, key);
            std::fill_n(to_far_key, count, far_key);
            far.copy_ends(line, to_far_end);
            return;
        }
        for (std::int64_t i = 0; i < count; ++i) {
            to_tick[i] = static_cast<std::int32_t>(row);
            if (withdraws) to_sign[i] = static_cast<std::int8_t>(sign);
            to_end[i] = end;
            to_key[i] = key;
            to_far_key[i] = far_key;
            to_far_end[i] = far.end(line, i);
        }
    }

    static constexpr std::int64_t few = 4;  // below that, runs take longer to begin than to write

    Half halves_[2];
};

}  // namespace yardstick
