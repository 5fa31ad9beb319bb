#include "shim.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
	const char *build, *description;
} version; // ov_version_t

static struct {
	int (*core_create)(void **);
	int (*read_model)(const void *, const char *, size_t, const void *, void **);
	int (*compile)(const void *, const void *, const char *, size_t, const ddiff_property *, void **);
	int (*create_request)(const void *, void **);
	int (*tensor)(int, ddiff_shape, void *, void **);
	int (*set_tensor)(void *, const char *, const void *);
	int (*infer)(void *);
	int (*version)(version *);
	void (*free_version)(version *);
	void (*free_model)(void *);
	void (*free_compiled)(void *);
	void (*free_request)(void *);
	void (*free_tensor)(void *);
	const char *(*last_error)(void);
	void (*free_text)(const char *);
} ov;

static void *core;

static char *failure(void) {
	const char *text = ov.last_error();
	char *message = strdup(text && *text ? text : "unknown error");
	if (text) ov.free_text(text);
	return message;
}

char *ddiff_load(const char *path) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) return strdup(dlerror());
	const struct {
		const char *name;
		void **function;
	} symbols[] = {
		{"ov_core_create", (void **)&ov.core_create},
		{"ov_core_read_model_from_memory_buffer", (void **)&ov.read_model},
		{"ov_core_compile_model_props", (void **)&ov.compile},
		{"ov_compiled_model_create_infer_request", (void **)&ov.create_request},
		{"ov_tensor_create_from_host_ptr", (void **)&ov.tensor},
		{"ov_infer_request_set_tensor", (void **)&ov.set_tensor},
		{"ov_infer_request_infer", (void **)&ov.infer},
		{"ov_get_openvino_version", (void **)&ov.version},
		{"ov_version_free", (void **)&ov.free_version},
		{"ov_model_free", (void **)&ov.free_model},
		{"ov_compiled_model_free", (void **)&ov.free_compiled},
		{"ov_infer_request_free", (void **)&ov.free_request},
		{"ov_tensor_free", (void **)&ov.free_tensor},
		{"ov_get_last_err_msg", (void **)&ov.last_error},
		{"ov_free", (void **)&ov.free_text},
	};
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		if (!(*symbols[i].function = dlsym(library, symbols[i].name))) {
			char *message = strdup(dlerror());
			dlclose(library);
			return message;
		}
	}
	return ov.core_create(&core) ? failure() : NULL;
}

char *ddiff_version(void) {
	version v;
	if (ov.version(&v)) return strdup("unknown");
	char *build = strdup(v.build);
	ov.free_version(&v);
	return build;
}

ddiff_network ddiff_compile(const char *model, size_t size, const ddiff_property *properties, size_t n) {
	ddiff_network net = {0};
	void *read = NULL;
	if (!core) {
		net.error = strdup("no library is loaded");
		return net;
	}
	if (ov.read_model(core, model, size, NULL, &read)) {
		net.error = failure();
		return net;
	}
	if (ov.compile(core, read, "CPU", n, properties, &net.compiled)) {
		net.error = failure();
	} else if (ov.create_request(net.compiled, &net.request)) {
		net.error = failure();
		ov.free_compiled(net.compiled);
	}
	ov.free_model(read);
	return net;
}

char *ddiff_bind(ddiff_network net, const char *name, int type, const int64_t *dims, int64_t rank, void *data) {
	void *tensor = NULL;
	ddiff_shape shape = {rank, (int64_t *)dims};
	if (ov.tensor(type, shape, data, &tensor)) return failure();
	char *message = ov.set_tensor(net.request, name, tensor) ? failure() : NULL;
	ov.free_tensor(tensor);
	return message;
}

char *ddiff_infer(ddiff_network net) { return ov.infer(net.request) ? failure() : NULL; }

void ddiff_close(ddiff_network net) {
	ov.free_request(net.request);
	ov.free_compiled(net.compiled);
}
