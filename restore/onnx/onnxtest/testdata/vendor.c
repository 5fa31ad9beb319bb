// A plugin for ONNX Runtime that loads another plugin, named by DDIFF_TEST_PLUGIN, and answers its questions about the
// vendor of the CPU with Intel. The OpenVINO plugin 1.8.1 offers no device for CPUs of other vendors, although OpenVINO
// computes on them; with this one the tests of the provider compute on any x86-64 CPU.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "onnxruntime_c_api.h"

static const OrtApiBase* base;
static const OrtApi* real;

// The table of functions grows at its end with each version; the spare entries have room for versions after the header's.
static union {
  OrtApi api;
  void* entries[sizeof(OrtApi) / sizeof(void*) + 32];
} altered;

static uint32_t ORT_API_CALL vendor_id(const OrtHardwareDevice* device) {
  return real->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU ? 0x8086 : real->HardwareDevice_VendorId(device);
}

static const char* ORT_API_CALL vendor(const OrtHardwareDevice* device) {
  return real->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU ? "GenuineIntel" : real->HardwareDevice_Vendor(device);
}

static const OrtApi* ORT_API_CALL get_api(uint32_t version) {
  real = base->GetApi(version);
  if (real == NULL) return NULL;
  memcpy(&altered, real, sizeof altered);
  altered.api.HardwareDevice_VendorId = vendor_id;
  altered.api.HardwareDevice_Vendor = vendor;
  return &altered.api;
}

static const char* ORT_API_CALL get_version_string(void) { return base->GetVersionString(); }

static const OrtApiBase altered_base = {get_api, get_version_string};

static void* symbol(const char* name) {
  static void* plugin;
  const char* path = getenv("DDIFF_TEST_PLUGIN");
  if (plugin == NULL && path != NULL) plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return plugin == NULL ? NULL : dlsym(plugin, name);
}

OrtStatus* CreateEpFactories(const char* name, const OrtApiBase* ort, const OrtLogger* logger, OrtEpFactory** factories,
                             size_t max, size_t* count) {
  base = ort;
  CreateEpApiFactoriesFn create = (CreateEpApiFactoriesFn)symbol("CreateEpFactories");
  if (create == NULL) return ort->GetApi(ORT_API_VERSION)->CreateStatus(ORT_FAIL, "DDIFF_TEST_PLUGIN cannot be loaded");
  return create(name, &altered_base, logger, factories, max, count);
}

OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) { return ((ReleaseEpApiFactoryFn)symbol("ReleaseEpFactory"))(factory); }
