#include "textflag.h"

// func bandAVX2(dst *[4]*float32, columns *[4]float64, first *int, weights *[]float32, from, to int)
TEXT ·bandAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ (DI), R8
	MOVQ 8(DI), R9
	MOVQ 16(DI), R10
	MOVQ 24(DI), R11
	MOVQ columns+8(FP), R12
	MOVQ first+16(FP), R13
	MOVQ weights+24(FP), BX
	MOVQ from+32(FP), DX
	LEAQ (DX)(DX*2), AX
	LEAQ (BX)(AX*8), BX // slices have three words
sums:
	MOVQ (R13)(DX*8), AX
	SHLQ $5, AX
	ADDQ R12, AX
	MOVQ (BX), SI
	MOVQ 8(BX), CX
	VXORPD Y0, Y0, Y0
	VXORPD X1, X1, X1
terms:
	VCVTSS2SD (SI), X1, X2
	VBROADCASTSD X2, Y2
	VMULPD (AX), Y2, Y2
	VADDPD Y2, Y0, Y0
	ADDQ $4, SI
	ADDQ $32, AX
	DECQ CX
	JNZ terms
	VCVTPD2PSY Y0, X0
	VMOVSS X0, (R8)(DX*4)
	VEXTRACTPS $1, X0, (R9)(DX*4)
	VEXTRACTPS $2, X0, (R10)(DX*4)
	VEXTRACTPS $3, X0, (R11)(DX*4)
	ADDQ $24, BX
	INCQ DX
	CMPQ DX, to+40(FP)
	JLT sums
	VZEROUPPER
	RET
