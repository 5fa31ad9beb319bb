#include "textflag.h"

DATA lanes<>+0(SB)/8, $0
DATA lanes<>+8(SB)/8, $1
DATA lanes<>+16(SB)/8, $2
DATA lanes<>+24(SB)/8, $3
GLOBL lanes<>(SB), RODATA, $32

#define BROADCAST(name, value) \
	DATA name<>+0(SB)/4, value \
	DATA name<>+4(SB)/4, value \
	DATA name<>+8(SB)/4, value \
	DATA name<>+12(SB)/4, value \
	DATA name<>+16(SB)/4, value \
	DATA name<>+20(SB)/4, value \
	DATA name<>+24(SB)/4, value \
	DATA name<>+28(SB)/4, value \
	GLOBL name<>(SB), RODATA, $32

BROADCAST(four, $4)
BROADCAST(mul0, $0xD2511F53)
BROADCAST(mul1, $0xCD9E8D57)
BROADCAST(weyl0, $0x9E3779B9)
BROADCAST(weyl1, $0xBB67AE85)
BROADCAST(one, $1)
BROADCAST(low31, $0x7fffffff)
BROADCAST(low27, $0x07ffffff)
BROADCAST(top, $0x80000000)
BROADCAST(exponent, $158)
BROADCAST(limit, $32)
DATA scale<>+0(SB)/8, $0x3e40000000000000 // 2^-27
DATA scale<>+8(SB)/8, $0x3e40000000000000
DATA scale<>+16(SB)/8, $0x3e40000000000000
DATA scale<>+24(SB)/8, $0x3e40000000000000
GLOBL scale<>(SB), RODATA, $32

// ROUND makes a round of four blocks, whose words are in the lower halves of 64 bits. The new c1 and c3 are in p1 and p0.
#define ROUND(c0, c1, c2, c3, p0, p1) \
	VPMULUDQ Y9, c2, p1 \
	VPMULUDQ Y8, c0, p0 \
	VPXOR Y10, c1, c1 \
	VPSRLQ $32, p1, c0 \
	VPXOR c1, c0, c0 \
	VPXOR Y11, c3, c3 \
	VPSRLQ $32, p0, c2 \
	VPXOR c3, c2, c2

#define KEYS \
	VPADDD weyl0<>(SB), Y10, Y10 \
	VPADDD weyl1<>(SB), Y11, Y11

// ROUNDS makes two rounds of eight blocks.
#define ROUNDS \
	ROUND(Y0, Y1, Y2, Y3, Y12, Y13) \
	ROUND(Y4, Y5, Y6, Y7, Y14, Y15) \
	KEYS \
	ROUND(Y0, Y13, Y2, Y12, Y3, Y1) \
	ROUND(Y4, Y15, Y6, Y14, Y7, Y5)

// WORDS puts the words of four blocks in order, into a and b.
#define WORDS(c0, c1, c2, c3) \
	VPSLLQ $32, c1, c1 \
	VPBLENDD $0xAA, c1, c0, c0 \
	VPSLLQ $32, c3, c3 \
	VPBLENDD $0xAA, c3, c2, c2 \
	VPUNPCKLQDQ c2, c0, c1 \
	VPUNPCKHQDQ c2, c0, c3 \
	VPERM2I128 $0x20, c3, c1, c0 \
	VPERM2I128 $0x31, c3, c1, c1

// CUBIC evaluates four cubics at t, an integer times 2^-27, into xz. Their rows are at the offsets from at on.
#define CUBIC(at, t, z, xz) \
	MOVL (at+0)(SP), R10 \
	MOVL (at+4)(SP), R11 \
	MOVL (at+8)(SP), R12 \
	MOVL (at+12)(SP), R13 \
	VMOVUPD (R8)(R10*1), X10 \
	VMOVUPD (R8)(R11*1), X11 \
	VMOVUPD 16(R8)(R10*1), X12 \
	VMOVUPD 16(R8)(R11*1), X13 \
	VINSERTF128 $1, (R8)(R12*1), Y10, Y10 \
	VINSERTF128 $1, (R8)(R13*1), Y11, Y11 \
	VINSERTF128 $1, 16(R8)(R12*1), Y12, Y12 \
	VINSERTF128 $1, 16(R8)(R13*1), Y13, Y13 \
	VMULPD scale<>(SB), t, t \
	VUNPCKHPD Y13, Y12, z \
	VMULPD t, z, z \
	VUNPCKLPD Y13, Y12, Y12 \
	VADDPD Y12, z, z \
	VMULPD t, z, z \
	VUNPCKHPD Y11, Y10, Y12 \
	VADDPD Y12, z, z \
	VMULPD t, z, z \
	VUNPCKLPD Y11, Y10, Y12 \
	VADDPD Y12, z, z \
	VMULPD Y15, z, z \
	VCVTPD2PSY z, xz

// QUANTILES stores the deviates of eight words.
#define QUANTILES(w, at) \
	VPSLLD $1, w, Y4 \
	VPOR one<>(SB), Y4, Y4 \
	VPAND low31<>(SB), w, Y5 \
	VPSRLD $1, Y5, Y6 \
	VPANDN Y5, Y6, Y6 \
	VCVTDQ2PS Y6, Y6 \
	VPSRLD $23, Y6, Y6 \
	VMOVDQU exponent<>(SB), Y7 \
	VPSUBD Y6, Y7, Y6 \
	VPMINUD limit<>(SB), Y6, Y6 \
	VPSLLVD Y6, Y4, Y4 \
	VPSRLD $27, Y4, Y5 \
	VPSLLD $5, Y5, Y5 \
	VPSLLD $10, Y6, Y6 \
	VPADDD Y6, Y5, Y5 \
	VMOVDQU Y5, at(SP) \
	VPAND low27<>(SB), Y4, Y4 \
	VCVTDQ2PD X4, Y5 \
	VEXTRACTI128 $1, Y4, X4 \
	VCVTDQ2PD X4, Y6 \
	CUBIC(at, Y5, Y7, X7) \
	CUBIC(at+16, Y6, Y9, X9) \
	VINSERTF128 $1, X9, Y7, Y7 \
	VPAND top<>(SB), w, w \
	VXORPS w, Y7, Y7 \
	VMOVUPS Y7, at(DI)

// func normalAVX2(dst *float32, groups int, i, step, purpose, k2, k0, k1 uint32, std float64)
TEXT ·normalAVX2(SB), NOSPLIT, $128-48
	MOVQ dst+0(FP), DI
	MOVQ groups+8(FP), SI
	MOVL i+16(FP), CX
	LEAQ ·table(SB), R8
	SUBQ $1024, R8
group:
	VMOVD CX, X0
	VPBROADCASTD X0, Y0
	VPADDD lanes<>(SB), Y0, Y0
	VPADDD four<>(SB), Y0, Y4
	VBROADCASTSS step+20(FP), Y1
	VMOVDQA Y1, Y5
	VBROADCASTSS purpose+24(FP), Y2
	VMOVDQA Y2, Y6
	VBROADCASTSS k2+28(FP), Y3
	VMOVDQA Y3, Y7
	VMOVDQU mul0<>(SB), Y8
	VMOVDQU mul1<>(SB), Y9
	VBROADCASTSS k0+32(FP), Y10
	VBROADCASTSS k1+36(FP), Y11
	ROUNDS
	KEYS
	ROUNDS
	KEYS
	ROUNDS
	KEYS
	ROUNDS
	KEYS
	ROUNDS
	WORDS(Y0, Y1, Y2, Y3)
	WORDS(Y4, Y5, Y6, Y7)
	VMOVDQA Y4, Y2
	VMOVDQA Y5, Y3
	VBROADCASTSD std+40(FP), Y15
	QUANTILES(Y0, 0)
	QUANTILES(Y1, 32)
	QUANTILES(Y2, 64)
	QUANTILES(Y3, 96)
	ADDQ $128, DI
	ADDL $8, CX
	DECQ SI
	JNZ group
	VZEROUPPER
	RET
