// DISTINCT over the values of a binary join: how often each pair is there. Changes: value of the left input, of the right one.
#include "bag.hpp"
#include "timed_join.hpp"

namespace {

using namespace yardstick;

class Distinct {
public:
    using Cell = std::int64_t;

    explicit Distinct(const Setting& setting) : join_(setting) {}

    std::int64_t bytes() const { return join_.bytes() + pairs_.bytes(); }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            const std::int64_t now = batch.before + row;
            while (join_.is_due(now)) {
                const auto oldest = join_[join_.oldest()];
                const GrowingRing& partners = join_.ring(oldest.line(), 1 - oldest.port());
                if (!out.has_room(partners.count)) return row;
                const std::int64_t value = join_.leave();
                change(row, -1, oldest.port(), value, partners, out);
            }
            const int port = batch.port[row];
            const std::uint32_t line = join_.line_of(batch.key[row]);
            const GrowingRing& partners = join_.ring(line, 1 - port);
            if (!out.has_room(partners.count)) return row;
            change(row, 1, port, batch.value[row], partners, out);
            join_.enter(now, line, port, batch.value[row]);
        }
        return batch.rows;
    }

private:
    struct Key {
        std::int64_t left, right;
        bool operator==(const Key& other) const { return left == other.left && right == other.right; }
    };
    // Pairs of a mapping come or go. They are looked up together, so that their slots come near side by side.
    void change(std::int64_t row, int by, int port, std::int64_t value, const GrowingRing& partners, Results<Cell>& out) {
        constexpr std::uint32_t together = 32;
        Key keys[together];
        std::uint32_t hashes[together];
        for (std::uint32_t done = 0; done < partners.count; done += together) {
            const std::uint32_t n = std::min(together, partners.count - done);
            for (std::uint32_t i = 0; i < n; ++i) {
                const std::int64_t other = join_.rings().at(partners, done + i);
                keys[i] = port == 0 ? Key{value, other} : Key{other, value};
                hashes[i] = hash_of(static_cast<std::int64_t>(mix(keys[i].left) + static_cast<std::uint64_t>(keys[i].right)));
                pairs_.expect(hashes[i]);
            }
            for (std::uint32_t i = 0; i < n; ++i)
                if (by > 0 ? pairs_.add(keys[i], hashes[i]) : pairs_.remove(keys[i], hashes[i]))
                    out.change(row, by, keys[i].left, keys[i].right);
        }
    }

    TimedJoin<std::int64_t> join_;
    Bag<Key> pairs_;
};

}  // namespace

SAME_WORK(Distinct)
