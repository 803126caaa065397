# The four kernels in Mojo. The launches name the kernels that are compiled; none is executed.
from max.gpu import block_idx, lane_id, thread_idx
from max.gpu.host import DeviceContext

comptime N = 64
comptime Floats = Pointer[Float32, MutAnyOrigin]


def copy(source: Floats, output: Floats):
    var i = Int(block_idx.x) * 128 + Int(thread_idx.x)
    output[unsafe_offset=i] = source[unsafe_offset=i]


def transpose(source: Floats, output: Floats):
    var column = Int(block_idx.x) * 32 + Int(thread_idx.x)
    var row = Int(block_idx.y) * 4 + Int(thread_idx.y)
    output[unsafe_offset = column * N + row] = source[unsafe_offset = row * N + column]


def reduction(source: Floats, output: Floats):
    var row = Int(thread_idx.x)
    var total = Float32(0)
    for column in range(N):
        total += source[unsafe_offset = row * N + column]
    output[unsafe_offset=row] = total


def product(left: Floats, right: Floats, output: Floats):
    var column = Int(block_idx.x) * 32 + Int(thread_idx.x)
    var row = Int(block_idx.y) * 4 + Int(thread_idx.y)
    var total = Float32(0)
    for inner in range(N):
        total += left[unsafe_offset = row * N + inner] * right[unsafe_offset = inner * N + column]
    output[unsafe_offset = row * N + column] = total


def main() raises:
    var context = DeviceContext()
    var a = context.enqueue_create_buffer[DType.float32](N * N)
    context.enqueue_function[copy](a, a, grid_dim=32, block_dim=128)
    context.enqueue_function[transpose](a, a, grid_dim=(2, 16), block_dim=(32, 4))
    context.enqueue_function[reduction](a, a, grid_dim=1, block_dim=N)
    context.enqueue_function[product](a, a, a, grid_dim=(2, 16), block_dim=(32, 4))
