// 3-way chain join (a, b), (b, c), (c, d) over count windows. Results: a, b, c, d.
#include "chain_join.hpp"

namespace {

using namespace yardstick;

class Half {
public:
    using Cell = std::int64_t;
    using Number = std::int64_t;

    explicit Half(const Setting& setting)
        : lines_(setting.keys), ends_(lines_.size(), setting.most), partners_(lines_.size(), setting.most) {
        for (auto& queue : queues_) queue.places.resize(setting.window);
    }

    Number line_of(std::int64_t key) { return lines_.place_of(key); }
    Cell key(Number line) const { return lines_[line].key; }
    std::int64_t ends(Number line) const { return lines_[line].ends.count; }
    Cell end(Number line, std::int64_t i) const { return ends_.at(line, lines_[line].ends, i); }
    void copy_ends(Number line, Cell* to) const { ends_.copy(line, lines_[line].ends, to); }
    std::int64_t partners(Number line) const { return lines_[line].partners.count; }
    Number partner(Number line, std::int64_t i) const { return partners_.at(line, lines_[line].partners, i); }

    // Have what will be asked for come nearer.
    void expect(std::int64_t key) const { lines_.expect(key); }
    void expect_ends(Number line) const { ends_.expect(line, lines_[line].ends); }
    void expect_partners(Number line) const { partners_.expect(line, lines_[line].partners); }

    void enter_end(Number line, Cell end) { enter(line, &Line::ends, ends_, end, queues_[0]); }
    void enter_partner(Number line, Number partner) {
        enter(line, &Line::partners, partners_, static_cast<std::int32_t>(partner), queues_[1]);
    }

private:
    struct alignas(64) Line {
        std::int64_t key = 0;
        Ring ends, partners;
    };
    struct Queue {
        std::vector<std::int32_t> places;  // lines by age
        std::size_t inserted = 0, slot = 0;
    };

    template <class Kept>
    void enter(Number line, Ring Line::* ring, Runs<Kept>& runs, Kept cell, Queue& queue) {
        if (queue.inserted >= queue.places.size()) runs.pop(lines_[queue.places[queue.slot]].*ring);
        queue.places[queue.slot] = static_cast<std::int32_t>(line);
        runs.push(line, lines_[line].*ring, cell);
        ++queue.inserted;
        if (++queue.slot == queue.places.size()) queue.slot = 0;
    }

    Table<Line> lines_;
    Runs<Cell> ends_;
    Runs<std::int32_t> partners_;
    Queue queues_[2];  // of ends, of partners
};

class Chain {
public:
    using Cell = std::int64_t;

    explicit Chain(const Setting& setting) : join_(setting) {}

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            look_at(batch, row + 16, [](Half& half, std::int64_t key, bool) { half.expect(key); });
            look_at(batch, row + 8, [](Half& half, std::int64_t key, bool middle) {
                const std::int64_t line = half.line_of(key);
                middle ? half.expect_ends(line) : half.expect_partners(line);
            });
            if (!join_.take(batch, row, out)) return row;
        }
        return batch.rows;
    }

private:
    // The half or both that an arrival to come belongs to, and its key there.
    template <class Look>
    void look_at(const Batch& batch, std::int64_t row, Look look) {
        if (row >= batch.rows) return;
        const int port = batch.port[row];
        if (port < 2) look(join_.half(0), batch.key[row], port == 1);
        if (port > 0) look(join_.half(1), port == 1 ? batch.value[row] : batch.key[row], port == 1);
    }

    ChainJoin<Half> join_;
};

}  // namespace

YARDSTICK(Chain)
