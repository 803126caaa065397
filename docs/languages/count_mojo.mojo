# pip install ./ptxcount mojo==1.2.0 max-core==26.7.0 max-mojo-libs==26.7.0
# mojo build --emit asm --target-accelerator sm_90 count_mojo.mojo -o k.s && ptxcount *.ptx --grid 1 --block 256 'x=float32[256]'
from max.gpu import thread_idx
from max.gpu.host import DeviceContext

def double(x: Pointer[Float32, MutAnyOrigin]):
    x[unsafe_offset=Int(thread_idx.x)] *= 2

def main() raises:
    var context = DeviceContext()
    var x = context.enqueue_create_buffer[DType.float32](256)
    context.enqueue_function[double](x, grid_dim=1, block_dim=256)
