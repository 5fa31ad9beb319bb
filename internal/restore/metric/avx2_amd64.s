#include "textflag.h"

DATA one<>+0(SB)/4, $0x3f800000
GLOBL one<>(SB), RODATA, $4
DATA minusOne<>+0(SB)/4, $0xbf800000
GLOBL minusOne<>(SB), RODATA, $4
DATA quarter<>+0(SB)/4, $0x3e800000
GLOBL quarter<>(SB), RODATA, $4
DATA half<>+0(SB)/4, $0x3f000000
GLOBL half<>(SB), RODATA, $4
DATA two<>+0(SB)/8, $0x4000000000000000
GLOBL two<>(SB), RODATA, $8
DATA share<>+0(SB)/8, $0x403fe00000000000 // 255/8
GLOBL share<>(SB), RODATA, $8
DATA c1<>+0(SB)/4, $0x3851b717 // 0.01²/2
GLOBL c1<>(SB), RODATA, $4
DATA c2<>+0(SB)/4, $0x39ebedfa // 0.03²/2
GLOBL c2<>(SB), RODATA, $4

// func halvesAVX2(a, b, x, y *float32, n int)
TEXT ·halvesAVX2(SB), NOSPLIT, $0-40
	MOVQ a+0(FP), DI
	MOVQ b+8(FP), SI
	MOVQ x+16(FP), AX
	MOVQ y+24(FP), BX
	MOVQ n+32(FP), CX
	VBROADCASTSS one<>(SB), Y13
	VBROADCASTSS minusOne<>(SB), Y14
	VBROADCASTSS quarter<>(SB), Y15
	XORQ DX, DX
values:
	VMINPS (AX)(DX*4), Y13, Y0
	VMINPS (BX)(DX*4), Y13, Y1
	VMAXPS Y14, Y0, Y0
	VMAXPS Y14, Y1, Y1
	VADDPS Y1, Y0, Y2
	VSUBPS Y1, Y0, Y3
	VMULPS Y15, Y2, Y2
	VMULPS Y15, Y3, Y3
	VMOVUPS Y2, (DI)(DX*4)
	VMOVUPS Y3, (SI)(DX*4)
	ADDQ $8, DX
	CMPQ DX, CX
	JLT values
	VZEROUPPER
	RET

// func squaresAVX2(sums *[4]float64, values *float32, n int, mean float64)
TEXT ·squaresAVX2(SB), NOSPLIT, $0-32
	MOVQ sums+0(FP), DI
	MOVQ values+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSD mean+24(FP), Y15
	VXORPD Y0, Y0, Y0
	XORQ DX, DX
fours:
	VCVTPS2PD (SI)(DX*4), Y1
	VSUBPD Y15, Y1, Y1
	VMULPD Y1, Y1, Y1
	VADDPD Y1, Y0, Y0
	ADDQ $4, DX
	CMPQ DX, CX
	JLT fours
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET

// func pairsAVX2(dst *float64, values *float32, n int)
TEXT ·pairsAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ values+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS one<>(SB), Y12
	VBROADCASTSS minusOne<>(SB), Y13
	VBROADCASTSD two<>(SB), Y14
	VBROADCASTSD share<>(SB), Y15
	XORQ DX, DX
pairs:
	VMINPS (SI)(DX*8), Y12, Y0
	VMAXPS Y13, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VSHUFPS $0x88, X1, X0, X2 // the first values
	VSHUFPS $0xdd, X1, X0, X3 // the second ones
	VCVTPS2PD X2, Y2
	VCVTPS2PD X3, Y3
	VADDPD Y14, Y2, Y2
	VADDPD Y3, Y2, Y2
	VMULPD Y15, Y2, Y2
	VADDPD (DI)(DX*8), Y2, Y2
	VMOVUPD Y2, (DI)(DX*8)
	ADDQ $4, DX
	CMPQ DX, CX
	JLT pairs
	VZEROUPPER
	RET

// func differenceAVX2(dst, a, b, c, d, e, f *float64, n int, scale float64)
TEXT ·differenceAVX2(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), R8
	MOVQ b+16(FP), R9
	MOVQ c+24(FP), R10
	MOVQ d+32(FP), R11
	MOVQ e+40(FP), R12
	MOVQ f+48(FP), R13
	MOVQ n+56(FP), CX
	VBROADCASTSD scale+64(FP), Y15
	VPCMPEQD Y14, Y14, Y14
	VPSRLQ $1, Y14, Y14 // all bits but the sign
	XORQ DX, DX
corners:
	VMOVUPD (R9)(DX*8), Y0
	VMOVUPD (R11)(DX*8), Y1
	VMOVUPD (R13)(DX*8), Y2
	VSUBPD (R8)(DX*8), Y0, Y0
	VSUBPD (R10)(DX*8), Y1, Y1
	VSUBPD (R12)(DX*8), Y2, Y2
	VSUBPD Y0, Y1, Y0
	VSUBPD Y1, Y2, Y2
	VSUBPD Y2, Y0, Y0
	VANDPD Y14, Y0, Y0
	VMULPD Y15, Y0, Y0
	VMOVUPD Y0, (DI)(DX*8)
	ADDQ $4, DX
	CMPQ DX, CX
	JLT corners
	VZEROUPPER
	RET

// PAIR adds two values at the distance of a window's weight w from the middle to the sums of their differences and of the squares of these.
#define PAIR(first, last, middle, w, sum, squares) \
	VMOVUPS first, Y5 \
	VMOVUPS last, Y6 \
	VSUBPS middle, Y5, Y5 \
	VSUBPS middle, Y6, Y6 \
	VADDPS Y6, Y5, Y7 \
	VMULPS Y7, w, Y7 \
	VADDPS Y7, sum, sum \
	VMULPS Y5, Y5, Y5 \
	VMULPS Y6, Y6, Y6 \
	VADDPS Y6, Y5, Y5 \
	VMULPS Y5, w, Y5 \
	VADDPS Y5, squares, squares

// MOMENTS makes mean and variance of the sums.
#define MOMENTS(middle, sum, squares) \
	VMULPS sum, sum, Y5 \
	VSUBPS Y5, squares, squares \
	VADDPS middle, sum, sum

// func downAVX2(ma, mb, va, vb, a, b *float32, stride, n int, window *[11]float32)
TEXT ·downAVX2(SB), NOSPLIT, $0-72
	MOVQ ma+0(FP), R8
	MOVQ mb+8(FP), R9
	MOVQ va+16(FP), R10
	MOVQ vb+24(FP), R11
	MOVQ a+32(FP), AX
	MOVQ b+40(FP), BX
	MOVQ stride+48(FP), R12
	SHLQ $2, R12
	MOVQ n+56(FP), CX
	LEAQ (R12)(R12*4), DX // to the middle
	ADDQ DX, AX
	ADDQ DX, BX
	MOVQ window+64(FP), R13
columns:
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VMOVUPS (AX), Y8
	VMOVUPS (BX), Y9
	LEAQ (R12)(R12*4), DX // distance of the pair
	XORQ SI, SI
pairs:
	VBROADCASTSS (R13)(SI*4), Y4
	MOVQ AX, DI
	SUBQ DX, DI
	PAIR((DI), (AX)(DX*1), Y8, Y4, Y0, Y2)
	MOVQ BX, DI
	SUBQ DX, DI
	PAIR((DI), (BX)(DX*1), Y9, Y4, Y1, Y3)
	INCQ SI
	SUBQ R12, DX
	JNZ pairs
	MOMENTS(Y8, Y0, Y2)
	MOMENTS(Y9, Y1, Y3)
	VMOVUPS Y0, (R8)
	VMOVUPS Y1, (R9)
	VMOVUPS Y2, (R10)
	VMOVUPS Y3, (R11)
	ADDQ $32, R8
	ADDQ $32, R9
	ADDQ $32, R10
	ADDQ $32, R11
	ADDQ $32, AX
	ADDQ $32, BX
	SUBQ $8, CX
	JNZ columns
	VZEROUPPER
	RET

// ACROSS adds a pair of all four values.
#define ACROSS(first, last, w) \
	PAIR(first(R8)(DX*4), last(R8)(DX*4), Y8, w, Y0, Y2) \
	PAIR(first(R9)(DX*4), last(R9)(DX*4), Y9, w, Y1, Y3) \
	VMOVUPS first(R10)(DX*4), Y5 \
	VMOVUPS first(R11)(DX*4), Y6 \
	VADDPS last(R10)(DX*4), Y5, Y5 \
	VADDPS last(R11)(DX*4), Y6, Y6 \
	VMULPS Y5, w, Y5 \
	VMULPS Y6, w, Y6 \
	VADDPS Y5, Y10, Y10 \
	VADDPS Y6, Y11, Y11

#define WEIGHT(at) VBROADCASTSS at(R13), Y4

// func compareAVX2(similarity, ma, mb, va, vb *float32, n int, window *[11]float32)
TEXT ·compareAVX2(SB), NOSPLIT, $0-56
	MOVQ similarity+0(FP), DI
	MOVQ ma+8(FP), R8
	MOVQ mb+16(FP), R9
	MOVQ va+24(FP), R10
	MOVQ vb+32(FP), R11
	MOVQ n+40(FP), CX
	MOVQ window+48(FP), R13
	VBROADCASTSS 20(R13), Y12
	VBROADCASTSS half<>(SB), Y13
	VBROADCASTSS c1<>(SB), Y14
	VBROADCASTSS c2<>(SB), Y15
	XORQ DX, DX
positions:
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VMOVUPS 20(R8)(DX*4), Y8
	VMOVUPS 20(R9)(DX*4), Y9
	VMULPS 20(R10)(DX*4), Y12, Y10
	VMULPS 20(R11)(DX*4), Y12, Y11
	WEIGHT(0)
	ACROSS(0, 40, Y4)
	WEIGHT(4)
	ACROSS(4, 36, Y4)
	WEIGHT(8)
	ACROSS(8, 32, Y4)
	WEIGHT(12)
	ACROSS(12, 28, Y4)
	WEIGHT(16)
	ACROSS(16, 24, Y4)
	MOMENTS(Y8, Y0, Y2)
	MOMENTS(Y9, Y1, Y3)
	VADDPS Y10, Y2, Y2 // va
	VADDPS Y11, Y3, Y3 // vb
	VADDPS Y13, Y0, Y0
	VMULPS Y0, Y0, Y0
	VMULPS Y1, Y1, Y1
	VADDPS Y1, Y0, Y0
	VADDPS Y14, Y0, Y0
	VADDPS Y1, Y1, Y1
	VDIVPS Y0, Y1, Y1 // l
	VADDPS Y3, Y2, Y2
	VADDPS Y15, Y2, Y2
	VADDPS Y3, Y3, Y3
	VDIVPS Y2, Y3, Y3 // c
	VADDPS Y13, Y13, Y5 // 1
	VSUBPS Y1, Y5, Y1
	VSUBPS Y3, Y5, Y3
	VMULPS Y3, Y1, Y1
	VMOVUPS Y1, (DI)(DX*4)
	ADDQ $8, DX
	CMPQ DX, CX
	JLT positions
	VZEROUPPER
	RET
