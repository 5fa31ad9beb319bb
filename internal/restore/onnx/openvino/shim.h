// The part of OpenVINO's C interface that the package uses, by pointers to the functions of the loaded library.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

// ddiff_property is a setting of the device (ov_property_t).
typedef struct {
	const char *key, *value;
} ddiff_property;

// ddiff_network is a compiled model with its only request, or an error.
typedef struct {
	void *compiled, *request;
	char *error;
} ddiff_network;

// ddiff_shape is ov_shape_t.
typedef struct {
	int64_t rank;
	int64_t *dims;
} ddiff_shape;

// Element types (ov_element_type_e).
enum { DDIFF_F32 = 4, DDIFF_I64 = 10 };

// Functions that can fail return NULL, or a message. The caller frees messages and the version with free.
char *ddiff_load(const char *path);
char *ddiff_version(void);
ddiff_network ddiff_compile(const char *model, size_t size, const ddiff_property *properties, size_t n);
char *ddiff_bind(ddiff_network net, const char *name, int type, const int64_t *dims, int64_t rank, void *data);
char *ddiff_infer(ddiff_network net);
void ddiff_close(ddiff_network net);
