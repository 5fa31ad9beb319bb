#include "textflag.h"

// func afterAVX2(out *float32, stride int, columns *[4]float64, first *int, weights *[]float32, n int)
TEXT ·afterAVX2(SB), NOSPLIT, $0-48
	MOVQ out+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ columns+16(FP), BX
	MOVQ first+24(FP), R9
	MOVQ weights+32(FP), R10
	MOVQ n+40(FP), CX
	SHLQ $2, R8
	LEAQ (R8)(R8*2), R11
values:
	MOVQ (R9), AX
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
	VMOVSS X0, (DI)
	VEXTRACTPS $1, X0, (DI)(R8*1)
	VEXTRACTPS $2, X0, (DI)(R8*2)
	VEXTRACTPS $3, X0, (DI)(R11*1)
	ADDQ $4, DI
	ADDQ $8, R9
	ADDQ $24, R10
	DECQ CX
	JNZ values
	VZEROUPPER
	RET
