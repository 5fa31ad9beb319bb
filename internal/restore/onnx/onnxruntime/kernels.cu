// The kernels of ddiff's own operations on NVIDIA's GPUs, for images [N, pixels, C] in float16 or float32. `make kernels` compiles them to kernels.ptx, which
// the driver compiles for the card. The sums have a fixed order: equal inputs give equal bits.

// Half is float16 without the headers of CUDA.
struct Half {
  unsigned short bits;
};

__device__ inline float wide(float v) { return v; }
__device__ inline float wide(Half v) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
  return f;
}
__device__ inline void narrow(float v, float &out) { out = v; }
__device__ inline void narrow(float v, Half &out) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(v)); }

// Pack has the V channels that a thread loads at once.
template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T v[V];
};

// statistics writes mean and sum of squared deviations of each group in each block of rows pixels. blockIdx.y is the image. The sums are those of differences
// from the block's first pixel, so that a large mean costs no digits.
template <class T, int V>
__device__ void statistics(const T *x, const float *bias, float2 *partial, int pixels, int channels, int groups, int rows) {
  extern __shared__ float shared[];
  const int lanes = channels / V, lane = threadIdx.x % lanes, row = threadIdx.x / lanes, stride = blockDim.x / lanes;
  const int first = blockIdx.x * rows, last = min(first + rows, pixels);
  const Pack<T, V> *image = (const Pack<T, V> *)(x + (size_t)blockIdx.y * pixels * channels);
  float origin[V], sum[V] = {}, square[V] = {};
  const Pack<T, V> begin = image[(size_t)first * lanes + lane];
  for (int i = 0; i < V; i++) origin[i] = wide(begin.v[i]);
#pragma unroll 2
  for (int p = first + row; p < last; p += stride) {
    const Pack<T, V> here = image[(size_t)p * lanes + lane];
    for (int i = 0; i < V; i++) {
      const float d = wide(here.v[i]) - origin[i];
      sum[i] += d;
      square[i] = fmaf(d, d, square[i]);
    }
  }
  float *sums = shared, *squares = shared + stride * channels;
  for (int i = 0; i < V; i++) {
    sums[row * channels + lane * V + i] = sum[i];
    squares[row * channels + lane * V + i] = square[i];
  }
  __syncthreads();
  const float n = last - first;
  for (int c = threadIdx.x; c < channels; c += blockDim.x) {
    float s = 0, q = 0;
    for (int r = 0; r < stride; r++) {
      s += sums[r * channels + c];
      q += squares[r * channels + c];
    }
    sums[c] = wide(((const T *)image)[(size_t)first * channels + c]) + s / n + (bias ? bias[c] : 0);
    squares[c] = q - s * (s / n);
  }
  __syncthreads();
  const int each = channels / groups;
  for (int g = threadIdx.x; g < groups; g += blockDim.x) {
    float mean = 0, deviation = 0;
    for (int c = g * each; c < (g + 1) * each; c++) mean += sums[c];
    mean /= each;
    for (int c = g * each; c < (g + 1) * each; c++) deviation += squares[c] + n * (sums[c] - mean) * (sums[c] - mean);
    partial[(blockIdx.y * gridDim.x + blockIdx.x) * groups + g] = make_float2(mean, deviation);
  }
}

// total adds a value over the threads of a warp.
__device__ inline float total(float v) {
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);
  return v;
}

// normalise writes γ·(x + bias − mean)/√(variance + ε) + β, and its SiLU if asked for. gamma and beta are tables, of which it reads one row.
template <class T, int V>
__device__ void normalise(const T *x, const float *gamma, const float *beta, const float *bias, const long long *time, const float2 *partial, T *y, int pixels,
                          int channels, int groups, int rows, int blocks, float epsilon, int silu) {
  extern __shared__ float shared[];
  float *means = shared, *factors = shared + groups;
  const int each = channels / groups, warps = blockDim.x / 32;
  if (threadIdx.x < warps * 32) { // whole warps
    for (int g = threadIdx.x / 32; g < groups; g += warps) {
      const float2 *parts = partial + (size_t)blockIdx.y * blocks * groups + g;
      float mean = 0, deviation = 0;
      for (int b = threadIdx.x % 32; b < blocks; b += 32) mean += parts[b * groups].x * min(rows, pixels - b * rows);
      mean = total(mean) / pixels;
      for (int b = threadIdx.x % 32; b < blocks; b += 32) {
        const float2 part = parts[b * groups];
        deviation += part.y + (float)min(rows, pixels - b * rows) * each * (part.x - mean) * (part.x - mean);
      }
      deviation = total(deviation);
      if (threadIdx.x % 32 == 0) {
        means[g] = mean;
        factors[g] = 1 / sqrtf(deviation / ((float)pixels * each) + epsilon);
      }
    }
  }
  __syncthreads();
  const int lanes = channels / V, lane = threadIdx.x % lanes, row = threadIdx.x / lanes, stride = blockDim.x / lanes;
  const size_t table = time ? (size_t)time[0] * channels : 0;
  float slope[V], offset[V];
  for (int i = 0; i < V; i++) {
    const int c = lane * V + i, g = c / each;
    slope[i] = gamma[table + c] * factors[g];
    offset[i] = fmaf((bias ? bias[c] : 0) - means[g], slope[i], beta[table + c]);
  }
  const int first = blockIdx.x * rows, last = min(first + rows, pixels);
  const size_t image = (size_t)blockIdx.y * pixels * lanes;
#pragma unroll 2
  for (int p = first + row; p < last; p += stride) {
    Pack<T, V> here = ((const Pack<T, V> *)x)[image + (size_t)p * lanes + lane];
    for (int i = 0; i < V; i++) {
      float v = fmaf(wide(here.v[i]), slope[i], offset[i]);
      if (silu) v = __fdividef(v, 1 + __expf(-v));
      narrow(v, here.v[i]);
    }
    ((Pack<T, V> *)y)[image + (size_t)p * lanes + lane] = here;
  }
}

// add writes a + b + bias, for `packs` packs of channels.
template <class T, int V>
__device__ void add(const T *a, const T *b, const float *bias, T *y, long long packs, int channels) {
  const int lanes = channels / V;
  for (long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x; p < packs; p += (long long)gridDim.x * blockDim.x) {
    Pack<T, V> u = ((const Pack<T, V> *)a)[p];
    const Pack<T, V> w = ((const Pack<T, V> *)b)[p];
    const float *from = bias + p % lanes * V;
    for (int i = 0; i < V; i++) narrow(wide(u.v[i]) + wide(w.v[i]) + from[i], u.v[i]);
    ((Pack<T, V> *)y)[p] = u;
  }
}

#define KERNELS(NAME, T, V)                                                                                                                              \
  extern "C" __global__ void statistics_##NAME(const T *x, const float *bias, float2 *partial, int pixels, int channels, int groups, int rows) {        \
    statistics<T, V>(x, bias, partial, pixels, channels, groups, rows);                                                                                 \
  }                                                                                                                                                     \
  extern "C" __global__ void normalise_##NAME(const T *x, const float *gamma, const float *beta, const float *bias, const long long *time,              \
                                              const float2 *partial, T *y, int pixels, int channels, int groups, int rows, int blocks, float epsilon,   \
                                              int silu) {                                                                                               \
    normalise<T, V>(x, gamma, beta, bias, time, partial, y, pixels, channels, groups, rows, blocks, epsilon, silu);                                     \
  }                                                                                                                                                     \
  extern "C" __global__ void add_##NAME(const T *a, const T *b, const float *bias, T *y, long long packs, int channels) {                               \
    add<T, V>(a, b, bias, y, packs, channels);                                                                                                          \
  }

KERNELS(half, Half, 8)
KERNELS(float, float, 4)
