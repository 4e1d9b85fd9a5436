// Left mappings without a right one of the same key, over count windows. Changes: key, value of the left input.
#include "lines.hpp"
#include "rings.hpp"

namespace {

using namespace yardstick;

class Negation {
public:
    using Cell = std::int64_t;

    explicit Negation(const Setting& setting) : windows_(2, CountWindow(setting.window)) {}

    std::int64_t bytes() const { return lines_.bytes() + left_.bytes() + 2 * windows_[0].bytes(); }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            const int port = batch.port[row];
            const std::uint32_t number = lines_.number_of(batch.key[row]), oldest = windows_[port].oldest();
            if (port == 0) {
                if (!out.has_room(2)) return row;
                if (oldest != CountWindow::nobody) leave_left(row, lines_[oldest], out);
                enter_left(row, lines_[number], batch.value[row], out);
            } else if (oldest != number) {
                const std::int64_t most = lines_[number].left.count;
                if (!out.has_room(oldest == CountWindow::nobody ? most : most + lines_[oldest].left.count)) return row;
                if (oldest != CountWindow::nobody && --lines_[oldest].right == 0) change_all(row, 1, lines_[oldest], out);
                if (++lines_[number].right == 1) change_all(row, -1, lines_[number], out);
            }
            windows_[port].replace(number);
        }
        return batch.rows;
    }

private:
    struct alignas(32) Line {
        std::int64_t key = 0;
        GrowingRing left;
        std::int64_t right = 0;

        bool empty() const { return left.count == 0 && right == 0; }
    };

    void leave_left(std::int64_t row, Line& line, Results<Cell>& out) {
        const Cell value = left_.pop(line.left);
        if (line.right == 0) out.change(row, -1, line.key, value);
    }

    void enter_left(std::int64_t row, Line& line, Cell value, Results<Cell>& out) {
        left_.push(line.left, value);
        if (line.right == 0) out.change(row, 1, line.key, value);
    }

    void change_all(std::int64_t row, int by, const Line& line, Results<Cell>& out) const {
        for (std::uint32_t i = 0; i < line.left.count; ++i) out.change(row, by, line.key, left_.at(line.left, i));
    }

    Lines<Line> lines_;
    GrowingRings<Cell> left_;
    std::vector<CountWindow> windows_;
};

}  // namespace

SAME_WORK(Negation)
