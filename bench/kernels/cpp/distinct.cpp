// DISTINCT over the values of a binary join: the latest expiry of each pair says whether it is new.
// Results: value of the left input, value of the right one.
#include "binary_join.hpp"

namespace {

using namespace yardstick;

class Distinct {
public:
    using Cell = std::int64_t;

    explicit Distinct(const Setting& setting)
        : most_(setting.most), join_(setting), pairs_(power_of_two(2 * setting.groups * setting.values)), mask_(pairs_.size() - 1) {}

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            if (!out.has_room(most_)) return row;
            const std::int64_t now = batch.before + row, value = batch.value[row];
            const int port = batch.port[row];
            join_.take(now, port, batch.key[row], value, [&](const BinaryJoin::Match& match) {
                const std::int64_t left = port == 0 ? value : match.value, right = port == 0 ? match.value : value;
                Pair& pair = find(left, right);
                // What expires at this very tick was there just before it.
                if (pair.left == 0 || pair.expiry < now) {
                    out.add(row, left, right);
                    pair.left = left;
                    pair.right = right;
                    pair.expiry = 0;
                }
                pair.expiry = std::max(pair.expiry, match.arrived + join_.size());
            });
        }
        return batch.rows;
    }

private:
    struct alignas(32) Pair {
        std::int64_t left = 0, right = 0, expiry = 0;
    };

    Pair& find(std::int64_t left, std::int64_t right) {
        std::uint64_t at = mix(static_cast<std::int64_t>(mix(left)) + right) & mask_;
        while (pairs_[at].left != 0 && (pairs_[at].left != left || pairs_[at].right != right)) at = (at + 1) & mask_;
        return pairs_[at];
    }

    std::int64_t most_;
    BinaryJoin join_;
    std::vector<Pair> pairs_;
    std::uint64_t mask_;
};

}  // namespace

YARDSTICK(Distinct)
