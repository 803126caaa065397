// A CUDA driver that finds no device: enough to import PyCUDA and to compile through it where there is no driver.
//
// PyCUDA's extension needs every function of the driver API at its import.
// Each returns CUDA_ERROR_NO_DEVICE, except the two below. The list comes from `nm -D --undefined-only` on
// PyCUDA's _driver module; an import with a newer version names the missing symbol.
//
// cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o libcuda.so.1 stub_libcuda.c

enum { SUCCESS = 0, NO_DEVICE = 100, CUDA_VERSION = 13000 };

#define FUNCTIONS(X) \
    X(cuArray3DCreate_v2) X(cuArray3DGetDescriptor_v2) X(cuArrayCreate_v2) X(cuArrayDestroy) \
    X(cuArrayGetDescriptor_v2) X(cuCtxAttach) X(cuCtxCreate_v4) X(cuCtxDetach) X(cuCtxDisablePeerAccess) \
    X(cuCtxEnablePeerAccess) X(cuCtxGetApiVersion) X(cuCtxGetCacheConfig) X(cuCtxGetDevice) X(cuCtxGetLimit) \
    X(cuCtxGetSharedMemConfig) X(cuCtxPopCurrent_v2) X(cuCtxPushCurrent_v2) X(cuCtxSetCacheConfig) \
    X(cuCtxSetLimit) X(cuCtxSetSharedMemConfig) X(cuCtxSynchronize) X(cuDeviceCanAccessPeer) \
    X(cuDeviceComputeCapability) X(cuDeviceGet) X(cuDeviceGetAttribute) X(cuDeviceGetByPCIBusId) \
    X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceGetPCIBusId) X(cuDevicePrimaryCtxRelease_v2) \
    X(cuDevicePrimaryCtxRetain) X(cuDeviceTotalMem_v2) X(cuEventCreate) X(cuEventDestroy_v2) \
    X(cuEventElapsedTime_v2) X(cuEventQuery) X(cuEventRecord) X(cuEventSynchronize) X(cuFuncGetAttribute) \
    X(cuFuncSetAttribute) X(cuFuncSetBlockShape) X(cuFuncSetCacheConfig) X(cuFuncSetSharedSize) X(cuInit) \
    X(cuIpcCloseMemHandle) X(cuIpcGetEventHandle) X(cuIpcGetMemHandle) X(cuIpcOpenEventHandle) \
    X(cuIpcOpenMemHandle_v2) X(cuLaunch) X(cuLaunchGrid) X(cuLaunchGridAsync) X(cuLaunchKernel) \
    X(cuLinkAddData_v2) X(cuLinkAddFile_v2) X(cuLinkComplete) X(cuLinkCreate_v2) X(cuLinkDestroy) \
    X(cuMemAllocManaged) X(cuMemAllocPitch_v2) X(cuMemAlloc_v2) X(cuMemFreeHost) X(cuMemFree_v2) \
    X(cuMemGetAddressRange_v2) X(cuMemGetInfo_v2) X(cuMemHostAlloc) X(cuMemHostGetDevicePointer_v2) \
    X(cuMemHostGetFlags) X(cuMemHostRegister_v2) X(cuMemHostUnregister) X(cuMemcpy2DAsync_v2) \
    X(cuMemcpy2DUnaligned_v2) X(cuMemcpy2D_v2) X(cuMemcpy3DAsync_v2) X(cuMemcpy3DPeer) \
    X(cuMemcpy3DPeerAsync) X(cuMemcpy3D_v2) X(cuMemcpyAtoA_v2) X(cuMemcpyAtoD_v2) X(cuMemcpyAtoH_v2) \
    X(cuMemcpyDtoA_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemcpyDtoD_v2) X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoH_v2) \
    X(cuMemcpyHtoA_v2) X(cuMemcpyHtoDAsync_v2) X(cuMemcpyHtoD_v2) X(cuMemcpyPeer) X(cuMemcpyPeerAsync) \
    X(cuMemsetD16Async) X(cuMemsetD16_v2) X(cuMemsetD2D16Async) X(cuMemsetD2D16_v2) X(cuMemsetD2D32Async) \
    X(cuMemsetD2D32_v2) X(cuMemsetD2D8Async) X(cuMemsetD2D8_v2) X(cuMemsetD32Async) X(cuMemsetD32_v2) \
    X(cuMemsetD8Async) X(cuMemsetD8_v2) X(cuModuleGetFunction) X(cuModuleGetGlobal_v2) X(cuModuleGetSurfRef) \
    X(cuModuleGetTexRef) X(cuModuleLoad) X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleUnload) \
    X(cuParamSetSize) X(cuParamSetTexRef) X(cuParamSetf) X(cuParamSeti) X(cuParamSetv) \
    X(cuProfilerInitialize) X(cuProfilerStart) X(cuProfilerStop) X(cuStreamAttachMemAsync) X(cuStreamCreate) \
    X(cuStreamDestroy_v2) X(cuStreamQuery) X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuSurfRefGetArray) \
    X(cuSurfRefSetArray) X(cuTexRefCreate) X(cuTexRefDestroy) X(cuTexRefGetAddressMode) \
    X(cuTexRefGetAddress_v2) X(cuTexRefGetArray) X(cuTexRefGetFilterMode) X(cuTexRefGetFlags) \
    X(cuTexRefGetFormat) X(cuTexRefSetAddress2D_v3) X(cuTexRefSetAddressMode) X(cuTexRefSetAddress_v2) \
    X(cuTexRefSetArray) X(cuTexRefSetFilterMode) X(cuTexRefSetFlags) X(cuTexRefSetFormat)

#define ANSWER_NO_DEVICE(name) \
    int name(void) { return NO_DEVICE; }

FUNCTIONS(ANSWER_NO_DEVICE)

int cuDriverGetVersion(int* version)
{
    *version = CUDA_VERSION;
    return SUCCESS;
}

int cuGetErrorString(int error, const char** text)
{
    *text = error == NO_DEVICE ? "no CUDA-capable device is detected" : "unknown error";
    return SUCCESS;
}
