#include "textflag.h"

// func afterAVX2(to0, to1, to2, to3 *float32, columns *[4]float64, first *int, weights *[]float32, n int)
TEXT ·afterAVX2(SB), NOSPLIT, $0-64
	MOVQ to0+0(FP), R8
	MOVQ to1+8(FP), R11
	MOVQ to2+16(FP), R12
	MOVQ to3+24(FP), R13
	MOVQ columns+32(FP), BX
	MOVQ first+40(FP), R9
	MOVQ weights+48(FP), R10
	MOVQ n+56(FP), CX
	XORQ DI, DI
values:
	MOVQ (R9)(DI*8), AX
	SHLQ $5, AX
	ADDQ BX, AX
	MOVQ (R10), SI
	MOVQ 8(R10), DX
	VXORPD Y0, Y0, Y0
taps:
	VBROADCASTSS (SI), X1
	VCVTPS2PD X1, Y1
	VMULPD (AX), Y1, Y1
	VADDPD Y1, Y0, Y0
	ADDQ $4, SI
	ADDQ $32, AX
	DECQ DX
	JNZ taps
	VCVTPD2PSY Y0, X0
	VMOVSS X0, (R8)(DI*4)
	VEXTRACTPS $1, X0, (R11)(DI*4)
	VEXTRACTPS $2, X0, (R12)(DI*4)
	VEXTRACTPS $3, X0, (R13)(DI*4)
	ADDQ $24, R10
	INCQ DI
	CMPQ DI, CX
	JLT values
	VZEROUPPER
	RET
