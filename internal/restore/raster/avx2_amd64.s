#include "textflag.h"

DATA one<>+0(SB)/8, $0x3ff0000000000000
GLOBL one<>(SB), RODATA, $8
DATA half<>+0(SB)/8, $0x3fe0000000000000
GLOBL half<>(SB), RODATA, $8
DATA scale<>+0(SB)/8, $0x405fe00000000000 // 127.5
GLOBL scale<>(SB), RODATA, $8
DATA most<>+0(SB)/8, $0x406fe00000000000 // 255
GLOBL most<>(SB), RODATA, $8
DATA byte<>+0(SB)/2, $0x00ff
GLOBL byte<>(SB), RODATA, $2

// func addAVX2(sum *float64, weight float64, values *float32, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-32
	MOVQ sum+0(FP), DI
	VBROADCASTSD weight+8(FP), Y1
	MOVQ values+16(FP), SI
	MOVQ n+24(FP), CX
	XORQ DX, DX
sums:
	VCVTPS2PD (SI)(DX*4), Y0
	VMULPD Y1, Y0, Y0
	VADDPD (DI)(DX*8), Y0, Y0
	VMOVUPD Y0, (DI)(DX*8)
	ADDQ $4, DX
	CMPQ DX, CX
	JLT sums
	VZEROUPPER
	RET

// func finiteAVX2(values *float32, n int) bool
TEXT ·finiteAVX2(SB), NOSPLIT, $0-17
	MOVQ values+0(FP), SI
	MOVQ n+8(FP), CX
	XORQ DX, DX
	VXORPS Y1, Y1, Y1
values:
	VMOVUPS (SI)(DX*4), Y0
	VSUBPS Y0, Y0, Y0 // 0 or NaN
	VORPS Y0, Y1, Y1
	ADDQ $8, DX
	CMPQ DX, CX
	JLT values
	VCMPPS $3, Y1, Y1, Y1 // which are NaN
	VMOVMSKPS Y1, AX
	TESTL AX, AX
	SETEQ ret+16(FP)
	VZEROUPPER
	RET

// LEVELS sets four integers to the levels of values, of which NaN has 0.
#define LEVELS(values, y, x) \
	VCVTPS2PD values, y \
	VADDPD Y12, y, y \
	VMULPD Y13, y, y \
	VADDPD Y14, y, y \
	VMAXPD Y11, y, y \
	VMINPD Y15, y, y \
	VCVTTPD2DQY y, x

#define SAMPLE(k) \
	VPEXTRB $k, X0, (DI) \
	ADDQ DX, DI

// func samplesAVX2(dst *byte, values *float32, n, distance int)
TEXT ·samplesAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ values+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ distance+24(FP), DX
	VXORPD Y11, Y11, Y11
	VBROADCASTSD one<>(SB), Y12
	VBROADCASTSD scale<>(SB), Y13
	VBROADCASTSD half<>(SB), Y14
	VBROADCASTSD most<>(SB), Y15
samples:
	LEVELS((SI), Y0, X0)
	LEVELS(16(SI), Y1, X1)
	VPACKUSDW X1, X0, X0
	VPACKUSWB X0, X0, X0
	SAMPLE(0)
	SAMPLE(1)
	SAMPLE(2)
	SAMPLE(3)
	SAMPLE(4)
	SAMPLE(5)
	SAMPLE(6)
	SAMPLE(7)
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ samples
	VZEROUPPER
	RET

// func paethAVX2(out, row, above *byte, n, pixel int) int
TEXT ·paethAVX2(SB), NOSPLIT, $0-48
	MOVQ out+0(FP), DI
	MOVQ row+8(FP), R8
	MOVQ above+16(FP), R9
	MOVQ n+24(FP), CX
	MOVQ pixel+32(FP), DX
	LEAQ (R8)(DX*1), R10
	LEAQ (R9)(DX*1), R11
	VPBROADCASTW byte<>(SB), Y15
	VPXOR X8, X8, X8 // the differences before
	XORQ BX, BX // repeats
	XORQ SI, SI
bytes:
	VPMOVZXBW (R8)(SI*1), Y0 // a
	VPMOVZXBW (R11)(SI*1), Y1 // b
	VPMOVZXBW (R9)(SI*1), Y2 // c
	VPMOVZXBW (R10)(SI*1), Y3
	VPADDW Y2, Y2, Y4
	VPADDW Y2, Y4, Y4
	VPSUBW Y0, Y4, Y4
	VPSUBW Y1, Y4, Y4 // limit
	VPMINSW Y1, Y0, Y5 // low
	VPMAXSW Y1, Y0, Y6 // high
	VPCMPGTW Y4, Y6, Y7 // high > limit
	VPBLENDVB Y7, Y2, Y5, Y0
	VPCMPGTW Y5, Y4, Y7 // limit > low
	VPBLENDVB Y7, Y0, Y6, Y0
	VPSUBW Y0, Y3, Y3
	VPAND Y15, Y3, Y3
	VEXTRACTI128 $1, Y3, X4
	VPACKUSWB X4, X3, X3
	VMOVDQU X3, (DI)(SI*1)
	VPALIGNR $15, X8, X3, X4 // the one before each
	VPCMPEQB X3, X4, X4
	VPMOVMSKB X4, AX
	POPCNTL AX, AX
	ADDQ AX, BX
	VMOVDQA X3, X8
	ADDQ $16, SI
	CMPQ SI, CX
	JLT bytes
	MOVQ BX, ret+40(FP)
	VZEROUPPER
	RET
