/* Records the launches of a program: code, parameters, and arrays before and after.
 *
 * The driver loads this library into each process with CUDA if CUDA_INJECTION64_PATH names it. CUPTI then calls
 * `on_driver_call` before and after each driver call that `SUBSCRIBED` lists. The folder RECORD_FOLDER receives
 *
 *   launches     a line for each module, launch, parameter and array; recorder/recording.py reads it
 *   *.ptx        the PTX of a module, and *.cubin its machine code
 *   *.before     the bytes of an array before a launch, and *.after those after it, if they changed
 *
 * An array is an allocation to which 8 aligned bytes of a parameter point. So the program must allocate each array by
 * itself, without a pool. After MAX_TIMES launches of a kernel, only the line of a launch is written. Launches on several
 * threads, and in captured streams, are not supported.
 */
#include <cuda.h>
#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARRAYS = 64, MAX_BYTES = 4096, MAX_ARRAY_MIB = 32, MAX_TIMES = 2, LOADS = 6 };

/* The first LOADS load code. */
static const CUpti_CallbackId SUBSCRIBED[] = {
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoad, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary, CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData,
    CUPTI_DRIVER_TRACE_CBID_cuLinkAddData_v2,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,     CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,   CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
};

typedef struct {
  CUdeviceptr address;
  size_t size;
  void *before; /* NULL if the array is too large */
} Array;

static FILE *list;
static const char *folder;
static int modules, launches, array_count;
static unsigned char times_launched[1 << 16]; /* by a hash of the module and the kernel's name */
static Array arrays[MAX_ARRAYS];

static void write_file(const char *name, int number, int part, const char *suffix, const void *content, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s-%d-%d.%s", folder, name, number, part, suffix);
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(content, 1, size, file) != size || fclose(file)) {
    fprintf(stderr, "recorder: %s cannot be written\n", path);
    exit(1);
  }
}

/* Returns the size of an ELF file: its last table ends it. */
static size_t find_elf_size(const unsigned char *image) {
  uint64_t sections, segments;
  uint16_t numbers[5]; /* e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx */
  memcpy(&segments, image + 32, 8);
  memcpy(&sections, image + 40, 8);
  memcpy(numbers, image + 54, sizeof numbers);
  uint64_t first_end = segments + numbers[0] * numbers[1], second_end = sections + numbers[2] * numbers[3];
  return first_end > second_end ? first_end : second_end;
}

/* Reads a file, with a zero byte at its end; NULL if it cannot be read. The process keeps it. */
static void *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  char *content = calloc(1, size + 1);
  rewind(file);
  if (content != NULL && fread(content, 1, size, file) != (size_t)size) content = NULL;
  fclose(file);
  return content;
}

/* `handle` is a module or a library; 0 for code that is linked into the next module. */
static void record_code(const void *handle, const void *image) {
  const unsigned char *bytes = image;
  if (bytes == NULL) return;
  int is_elf = !memcmp(bytes, "\177ELF", 4), is_text = bytes[0] == '/' || bytes[0] == '.' || bytes[0] == '\n';
  if (is_elf) write_file("module", modules, 0, "cubin", image, find_elf_size(bytes));
  if (is_text) write_file("module", modules, 0, "ptx", image, strlen(image));
  fprintf(list, "module %d %llx %s\n", modules++, (unsigned long long)(uintptr_t)handle,
          is_elf ? "cubin" : is_text ? "ptx" : "other");
}

static void record_array(CUdeviceptr pointer) {
  CUdeviceptr address;
  size_t size;
  if (pointer == 0 || cuMemGetAddressRange(&address, &size, pointer) != CUDA_SUCCESS) return;
  for (int i = 0; i < array_count; i++)
    if (arrays[i].address == address) return;
  if (array_count == MAX_ARRAYS) return;
  Array *array = &arrays[array_count];
  *array = (Array){address, size, NULL};
  if (size <= (size_t)MAX_ARRAY_MIB << 20 && (array->before = malloc(size)) != NULL) {
    cuMemcpyDtoH(array->before, address, size);
    write_file("array", launches, array_count, "before", array->before, size);
  }
  fprintf(list, "array %d %llx %zu %s\n", array_count++, (unsigned long long)address, size,
          array->before ? "kept" : "large");
}

static void record_parameters(CUfunction function, void **values, void **extra) {
  const unsigned char *buffer = NULL;
  for (void **entry = extra; entry != NULL && entry[0] != CU_LAUNCH_PARAM_END; entry += 2)
    if (entry[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = entry[1];
  size_t offset, size;
  for (size_t i = 0; cuFuncGetParamInfo(function, i, &offset, &size) == CUDA_SUCCESS; i++) {
    unsigned char bytes[MAX_BYTES] = {0};
    if (size > sizeof bytes) size = sizeof bytes;
    memcpy(bytes, values ? values[i] : buffer + offset, size);
    fprintf(list, "parameter %zu ", size);
    for (size_t k = 0; k < size; k++) fprintf(list, "%02x", bytes[k]);
    fprintf(list, "\n");
    for (size_t k = 0; k + 8 <= size; k += 8) {
      CUdeviceptr pointer;
      memcpy(&pointer, bytes + k, 8);
      record_array(pointer);
    }
  }
}

/* Tells if a kernel was launched less than MAX_TIMES times, and counts this launch. */
static int is_new(CUmodule module, const char *name) {
  unsigned hash = (unsigned)((uintptr_t)module >> 4);
  for (; *name; name++) hash = hash * 16777619u ^ (unsigned char)*name;
  unsigned char *times = &times_launched[(hash ^ hash >> 16) & 0xffff];
  return *times < MAX_TIMES && ++*times;
}

static void begin_launch(CUfunction function, const unsigned *shape, unsigned shared, void **values, void **extra) {
  const char *name = NULL;
  CUfunction plain = function;
  if (cuFuncGetName(&name, function) != CUDA_SUCCESS &&
      cuKernelGetFunction(&plain, (CUkernel)function) == CUDA_SUCCESS)
    cuFuncGetName(&name, plain);
  CUmodule module = NULL;
  cuFuncGetModule(&module, plain);
  cuCtxSynchronize();
  fprintf(list, "launch %d %llx %s %u %u %u %u %u %u %u\n", launches, (unsigned long long)(uintptr_t)module,
          name ? name : "?", shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shared);
  array_count = 0;
  if (is_new(module, name ? name : "?")) record_parameters(plain, values, extra);
}

static void end_launch(CUresult result) {
  CUresult ended = result == CUDA_SUCCESS ? cuCtxSynchronize() : result;
  for (int i = 0; i < array_count; i++) {
    void *after = arrays[i].before && ended == CUDA_SUCCESS ? malloc(arrays[i].size) : NULL;
    if (after != NULL && cuMemcpyDtoH(after, arrays[i].address, arrays[i].size) == CUDA_SUCCESS &&
        memcmp(after, arrays[i].before, arrays[i].size))
      write_file("array", launches, i, "after", after, arrays[i].size);
    free(after);
    free(arrays[i].before);
  }
  fprintf(list, "end %d %d\n", launches++, (int)ended);
  fflush(list);
}

static void on_launch(const CUpti_CallbackData *call, CUpti_CallbackId id) {
  if (call->callbackSite == CUPTI_API_EXIT) {
    end_launch(*(const CUresult *)call->functionReturnValue);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel || id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz) {
    const cuLaunchKernel_params *given = call->functionParams;
    begin_launch(given->f, &given->gridDimX, given->sharedMemBytes, given->kernelParams, given->extra);
  } else {
    const cuLaunchKernelEx_params *given = call->functionParams;
    begin_launch(given->f, &given->config->gridDimX, given->config->sharedMemBytes, given->kernelParams, given->extra);
    for (unsigned i = 0; i < given->config->numAttrs; i++) {
      const CUlaunchAttribute *attribute = &given->config->attrs[i];
      if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        fprintf(list, "cluster %u %u %u\n", attribute->value.clusterDim.x, attribute->value.clusterDim.y,
                attribute->value.clusterDim.z);
    }
  }
}

static void on_load(const CUpti_CallbackData *call, CUpti_CallbackId id) {
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLinkAddData_v2) {
    const cuLinkAddData_v2_params *given = call->functionParams;
    if (call->callbackSite == CUPTI_API_ENTER && given->type == CU_JIT_INPUT_PTX) record_code(NULL, given->data);
  } else if (call->callbackSite == CUPTI_API_EXIT) { /* all begin with the handle's place and the code or its path */
    const cuModuleLoadData_params *given = call->functionParams;
    int is_path = id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoad;
    record_code(*given->module, is_path ? read_file(given->image) : given->image);
  }
}

static void CUPTIAPI on_driver_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
  (void)unused, (void)domain;
  int is_load = 0;
  for (int i = 0; i < LOADS; i++) is_load |= SUBSCRIBED[i] == id;
  (is_load ? on_load : on_launch)(data, id);
}

int InitializeInjection(void) {
  char path[4096];
  folder = getenv("RECORD_FOLDER");
  if (folder == NULL) return 1;
  snprintf(path, sizeof path, "%s/launches", folder);
  CUpti_SubscriberHandle subscriber;
  if ((list = fopen(path, "w")) == NULL || cuptiSubscribe(&subscriber, on_driver_call, NULL) != CUPTI_SUCCESS) {
    fprintf(stderr, "recorder: %s cannot be written, or another tool uses CUPTI\n", path);
    exit(1);
  }
  for (size_t i = 0; i < sizeof SUBSCRIBED / sizeof *SUBSCRIBED; i++)
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, SUBSCRIBED[i]);
  return 1;
}
