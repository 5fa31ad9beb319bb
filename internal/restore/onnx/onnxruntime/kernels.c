// The operations GroupNorm and AddBias of the domain "ddiff", see ../modelfile/channelslast.go: on CUDA by the kernels in kernels.cu, and GroupNorm in float32 on the CPU, which tests the rest of this file
// where there is no GPU.

#include "kernels.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The functions of ONNX Runtime's C interface by their places in the table OrtApi, see binding.go.
enum {
	CreateStatus = 0, GetErrorMessage = 2, CreateCustomOpDomain = 26, CustomOpDomain_Add = 27, AddCustomOpDomain = 28, GetTensorMutableData = 51, GetDimensionsCount = 61,
	GetDimensions = 62, GetTensorTypeAndShape = 65, KernelInfoGetAttribute_float = 85, KernelInfoGetAttribute_int64 = 86, KernelContext_GetInput = 90,
	KernelContext_GetOutput = 91, ReleaseStatus = 93, ReleaseTensorTypeAndShapeInfo = 99, KernelContext_GetGPUComputeStream = 193,
};

enum { Float = 1, Int64 = 7, Float16 = 10 }; // ONNXTensorElementDataType
enum { Fail = 1 };                                          // OrtErrorCode
enum { Required = 0, Optional = 1 };                        // OrtCustomOpInputOutputCharacteristic

typedef void *status; // OrtStatus *, NULL without an error

static void *const *api;
static const char *kernels; // in PTX

// operation is OrtCustomOp of version 17, with its own fields behind it.
typedef struct operation {
	uint32_t version;
	void *create;
	const char *(*name)(const struct operation *);
	const char *(*provider)(const struct operation *);
	int (*input_type)(const struct operation *, size_t);
	size_t (*inputs)(const struct operation *);
	int (*output_type)(const struct operation *, size_t);
	size_t (*outputs)(const struct operation *);
	void *compute;
	void (*destroy)(void *);
	int (*input_kind)(const struct operation *, size_t);
	int (*output_kind)(const struct operation *, size_t);
	int (*input_memory)(const struct operation *, size_t);
	int (*variadic[4])(const struct operation *);
	status (*create2)(const struct operation *, const void *, const void *, void **);
	status (*compute2)(void *, void *);
	void *infer;
	int (*start)(const struct operation *);
	int (*end)(const struct operation *);

	const char *title, *on;
	int type;
	size_t tensors, optional; // inputs, and the first that may be absent
} operation;

// node is an operation in a model.
typedef struct {
	int type;
	float epsilon;
	int64_t groups, activation;
} node;

// image is a tensor [N, ..., C].
typedef struct {
	void *data;
	int64_t dims[8], images, pixels, channels, count;
	size_t rank;
} image;

static status fail(const char *message) { return ((status (*)(int, const char *))api[CreateStatus])(Fail, message); }

// read finds the elements of input i, which are NULL if it is absent, and their shape if asked for.
static status read(void *context, size_t i, void **data, image *x) {
	void *value = NULL, *info = NULL;
	*data = NULL;
	status s = ((status (*)(void *, size_t, void **))api[KernelContext_GetInput])(context, i, &value);
	if (s || !value) return s;
	if ((s = ((status (*)(void *, void **))api[GetTensorMutableData])(value, data)) || !x) return s;
	if ((s = ((status (*)(void *, void **))api[GetTensorTypeAndShape])(value, &info))) return s;
	s = ((status (*)(void *, size_t *))api[GetDimensionsCount])(info, &x->rank);
	if (!s && (x->rank < 1 || x->rank > 8)) s = fail("an input of ddiff's operation has no dimensions, or more than eight");
	if (!s) s = ((status (*)(void *, int64_t *, size_t))api[GetDimensions])(info, x->dims, x->rank);
	((void (*)(void *))api[ReleaseTensorTypeAndShapeInfo])(info);
	if (s) return s;
	x->data = *data, x->images = x->dims[0], x->channels = x->dims[x->rank - 1], x->count = 1;
	for (size_t d = 0; d < x->rank; d++) x->count *= x->dims[d];
	x->pixels = x->count ? x->count / (x->images * x->channels) : 0;
	return NULL;
}

static status write(void *context, size_t i, const int64_t *dims, size_t rank, void **data) {
	void *value = NULL;
	status s = ((status (*)(void *, size_t, const int64_t *, size_t, void **))api[KernelContext_GetOutput])(context, i, dims, rank, &value);
	return s ? s : ((status (*)(void *, void **))api[GetTensorMutableData])(value, data);
}

// The driver's functions.
static struct {
	int (*current)(void **);
	int (*load)(void **, const void *);
	int (*function)(void **, void *, const char *);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
} driver;

// kernel finds a kernel of the current device. Its module is loaded at the first call and stays.
static status kernel(const char *name, int type, void **function) {
	static struct { void *context, *module; } loaded[64];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char full[64];
	snprintf(full, sizeof full, "%s_%s", name, type == Float16 ? "half" : "float");
	pthread_mutex_lock(&lock);
	int code = -1;
	if (!driver.launch) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW);
		if (library) {
			driver.current = (int (*)(void **))dlsym(library, "cuCtxGetCurrent");
			driver.load = (int (*)(void **, const void *))dlsym(library, "cuModuleLoadData");
			driver.function = (int (*)(void **, void *, const char *))dlsym(library, "cuModuleGetFunction");
			driver.launch = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))dlsym(library, "cuLaunchKernel");
		}
	}
	void *context = NULL;
	if (driver.launch && !(code = driver.current(&context))) {
		int i = 0;
		while (i < 63 && loaded[i].context && loaded[i].context != context) i++;
		if (loaded[i].context != context) {
			code = driver.load(&loaded[i].module, kernels);
			loaded[i].context = code ? NULL : context;
		}
		if (!code) code = driver.function(function, loaded[i].module, full);
	}
	pthread_mutex_unlock(&lock);
	if (!code) return NULL;
	char message[128];
	snprintf(message, sizeof message, "the driver cannot load the kernel %s: error %d", full, code);
	return fail(message);
}

static status launch(void *context, const char *name, int type, unsigned x, unsigned y, unsigned threads, unsigned shared, void **arguments) {
	void *stream = NULL, *function = NULL;
	status s = ((status (*)(void *, void **))api[KernelContext_GetGPUComputeStream])(context, &stream);
	if (!s) s = kernel(name, type, &function);
	if (s) return s;
	int code = driver.launch(function, x, y, 1, threads, 1, 1, shared, stream, arguments, NULL);
	if (!code) return NULL;
	char message[128];
	snprintf(message, sizeof message, "the driver cannot start the kernel %s: error %d", name, code);
	return fail(message);
}

// norm has the tensors of GroupNorm: an image, γ and β by channel, or tables of them by time; optional: a bias that is added to the image before, and the time.
typedef struct {
	image x, slope;
	float *gamma, *beta, *bias, *partial;
	int64_t *time;
	void *y;
} norm;

// blockOf is the number of elements of a block of pixels whose moments are computed together. It does not depend on the batch.
enum { blockOf = 16384, Threads = 256, Width = 8 };

static status tensors(const node *n, void *context, norm *t, int64_t *rows, int64_t *blocks) {
	status s = read(context, 0, &t->x.data, &t->x);
	if (!s) s = read(context, 1, (void **)&t->gamma, &t->slope);
	if (!s) s = read(context, 2, (void **)&t->beta, NULL);
	if (!s) s = read(context, 3, (void **)&t->bias, NULL);
	if (!s) s = read(context, 4, (void **)&t->time, NULL);
	if (s) return s;
	if (t->slope.count == t->x.channels) t->time = NULL; // no table
	if (n->groups < 1 || t->x.channels % n->groups) return fail("GroupNorm: the channels are no multiple of the groups");
	*rows = (blockOf + t->x.channels - 1) / t->x.channels;
	*blocks = (t->x.pixels + *rows - 1) / *rows;
	const int64_t dims[] = {t->x.images, *blocks, n->groups, 2};
	s = write(context, 0, t->x.dims, t->x.rank, &t->y);
	return s ? s : write(context, 1, dims, 4, (void **)&t->partial);
}

static status norm_cuda(void *self, void *context) {
	const node *n = self;
	norm t = {0};
	int64_t rows64 = 0, blocks64 = 0;
	status s = tensors(n, context, &t, &rows64, &blocks64);
	if (s || !t.x.count) return s;
	if (t.x.channels % Width || t.x.channels > 512 * Width) return fail("GroupNorm: the channels are no multiple of 8, or more than 4096");
	int pixels = t.x.pixels, channels = t.x.channels, groups = n->groups, rows = rows64, blocks = blocks64, silu = n->activation;
	int lanes = channels / (n->type == Float16 ? 8 : 4), high = lanes < Threads ? Threads / lanes : 1;
	float epsilon = n->epsilon;
	void *first[] = {&t.x.data, &t.bias, &t.partial, &pixels, &channels, &groups, &rows};
	void *second[] = {&t.x.data, &t.gamma, &t.beta, &t.bias, &t.time, &t.partial, &t.y, &pixels, &channels, &groups, &rows, &blocks, &epsilon, &silu};
	s = launch(context, "statistics", n->type, blocks, t.x.images, lanes * high, 8 * high * channels, first);
	return s ? s : launch(context, "normalise", n->type, blocks, t.x.images, lanes * high, 8 * groups, second);
}

static status add_cuda(void *self, void *context) {
	const node *n = self;
	image a = {0}, b = {0};
	void *bias = NULL, *y = NULL;
	status s = read(context, 0, &a.data, &a);
	if (!s) s = read(context, 1, &b.data, &b);
	if (!s && a.count != b.count) s = fail("AddBias: the images have different shapes");
	if (!s) s = read(context, 2, &bias, NULL);
	if (!s) s = write(context, 0, a.dims, a.rank, &y);
	if (s || !a.count) return s;
	int channels = a.channels, width = n->type == Float16 ? 8 : 4;
	if (channels % width) return fail("AddBias: the channels are no multiple of 8");
	long long packs = a.count / width, blocks = (packs + Threads - 1) / Threads;
	void *arguments[] = {&a.data, &b.data, &bias, &y, &packs, &channels};
	return launch(context, "add", n->type, blocks < 4096 ? blocks : 4096, 1, Threads, 0, arguments);
}

// norm_cpu is GroupNorm in double precision.
static status norm_cpu(void *self, void *context) {
	const node *n = self;
	norm t = {0};
	int64_t rows = 0, blocks = 0;
	status s = tensors(n, context, &t, &rows, &blocks);
	if (s) return s;
	const int64_t pixels = t.x.pixels, channels = t.x.channels, each = channels / n->groups, table = t.time ? t.time[0] * channels : 0;
	for (int64_t i = 0; i < t.x.images; i++) {
		const float *x = (const float *)t.x.data + i * pixels * channels;
		float *y = (float *)t.y + i * pixels * channels;
		for (int64_t g = 0; g < n->groups; g++) {
			double mean = 0, deviation = 0;
			for (int pass = 0; pass < 2; pass++) {
				for (int64_t p = 0; p < pixels; p++) {
					for (int64_t c = g * each; c < (g + 1) * each; c++) {
						const double v = (double)x[p * channels + c] + (t.bias ? t.bias[c] : 0);
						if (pass) deviation += (v - mean) * (v - mean);
						else mean += v / (double)(pixels * each);
					}
				}
			}
			const double factor = 1 / sqrt(deviation / (double)(pixels * each) + n->epsilon);
			for (int64_t p = 0; p < pixels; p++) {
				for (int64_t c = g * each; c < (g + 1) * each; c++) {
					const double v = ((double)x[p * channels + c] + (t.bias ? t.bias[c] : 0) - mean) * factor * t.gamma[table + c] + t.beta[table + c];
					y[p * channels + c] = (float)(n->activation ? v / (1 + exp(-v)) : v);
				}
			}
		}
	}
	return NULL;
}

static status create(const operation *op, const void *unused, const void *info, void **made) {
	node *n = calloc(1, sizeof *n);
	if (!n) return fail("no memory");
	n->type = op->type;
	status s = NULL;
	if (op->optional == 3) { // GroupNorm
		s = ((status (*)(const void *, const char *, float *))api[KernelInfoGetAttribute_float])(info, "epsilon", &n->epsilon);
		if (!s) s = ((status (*)(const void *, const char *, int64_t *))api[KernelInfoGetAttribute_int64])(info, "groups", &n->groups);
		if (!s) s = ((status (*)(const void *, const char *, int64_t *))api[KernelInfoGetAttribute_int64])(info, "activation", &n->activation);
	}
	if (s) free(n);
	else *made = n;
	return s;
}

static const char *title(const operation *op) { return op->title; }
static const char *provider(const operation *op) { return op->on; }
static size_t norm_outputs(const operation *op) { return 2; }
static size_t add_outputs(const operation *op) { return 1; }
static size_t inputs(const operation *op) { return op->tensors; }
static int norm_input(const operation *op, size_t i) { return i == 0 ? op->type : i == 4 ? Int64 : Float; }
static int add_input(const operation *op, size_t i) { return i < 2 ? op->type : Float; }
static int output(const operation *op, size_t i) { return i == 0 ? op->type : Float; }
static int input_kind(const operation *op, size_t i) { return i < op->optional ? Required : Optional; }
static int output_kind(const operation *op, size_t i) { return Required; }
static int memory(const operation *op, size_t i) { return 0; } // of the provider
static int none(const operation *op) { return 0; }
static int first_version(const operation *op) { return 1; }

#define OPERATION(NAME, ON, TYPE, TENSORS, OPTIONAL, KIND, COMPUTE) \
	{17, NULL, title, provider, KIND##_input, inputs, output, KIND##_outputs, NULL, free, input_kind, output_kind, memory, {none, none, none, none}, create, COMPUTE, NULL, first_version, first_version, NAME, ON, TYPE, TENSORS, OPTIONAL}

static const operation operations[] = {
	OPERATION("GroupNorm", "CUDAExecutionProvider", Float16, 5, 3, norm, norm_cuda), OPERATION("GroupNorm", "CUDAExecutionProvider", Float, 5, 3, norm, norm_cuda),
	OPERATION("GroupNorm", "CPUExecutionProvider", Float, 5, 3, norm, norm_cpu),
	OPERATION("AddBias", "CUDAExecutionProvider", Float16, 3, 9, add, add_cuda), OPERATION("AddBias", "CUDAExecutionProvider", Float, 3, 9, add, add_cuda),
};

// domain is that of the operations, made once. It lives as long as the library.
static void *domain;

static status make(void) {
	void *made = NULL;
	status s = ((status (*)(const char *, void **))api[CreateCustomOpDomain])("ddiff", &made);
	for (size_t i = 0; !s && i < sizeof operations / sizeof *operations; i++) s = ((status (*)(void *, const operation *))api[CustomOpDomain_Add])(made, &operations[i]);
	if (!s) domain = made;
	return s;
}

char *ddiff_register(void *const *table, void *options, const char *ptx) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	api = table, kernels = ptx;
	status s = domain ? NULL : make();
	pthread_mutex_unlock(&lock);
	if (!s) s = ((status (*)(void *, void *))api[AddCustomOpDomain])(options, domain);
	if (!s) return NULL;
	char *message = strdup(((const char *(*)(status))api[GetErrorMessage])(s));
	((void (*)(status))api[ReleaseStatus])(s);
	return message;
}
