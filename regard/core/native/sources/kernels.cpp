// Kernels of search on a CPU. Compiled by `regard.core.native.library` for the processor at hand.
//
// Every row of a result is computed by the same operations in the same order, however many rows,
// positions of padding or sentences there are, so results do not depend on the batch to the last
// bit. So there is no -ffast-math here, and sums are written as vectors of fixed width.

#include "products.h"
#include "recurrent.h"
#include "search.h"
#include "transformer.h"

// Sizes of the structures, which Python declares too.
EXPORT void struct_sizes(int64_t* sizes) {
    const int64_t found[] = {sizeof(Map), sizeof(Norm), sizeof(Block), sizeof(KeyValue),
                             sizeof(Step), sizeof(Advance)};
    std::memcpy(sizes, found, sizeof found);
}
