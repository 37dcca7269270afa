#include "textflag.h"

// func findDelimiters(dst, src *byte, blocks int, n *needles)
//
// Each block of 64 bytes gives 64 bits at dst: bit i is set where byte i equals one of the five
// needles. SSE2 belongs to every amd64 processor, so that nothing is asked of the machine.
TEXT ·findDelimiters(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ n+24(FP), DX
	MOVOU 0(DX), X0
	MOVOU 16(DX), X1
	MOVOU 32(DX), X2
	MOVOU 48(DX), X3
	MOVOU 64(DX), X4

block:
	TESTQ CX, CX
	JZ    done

	MOVOU   0(SI), X5
	MOVO    X5, X6
	PCMPEQB X0, X6
	MOVO    X5, X7
	PCMPEQB X1, X7
	POR     X7, X6
	MOVO    X5, X8
	PCMPEQB X2, X8
	MOVO    X5, X9
	PCMPEQB X3, X9
	POR     X9, X8
	PCMPEQB X4, X5
	POR     X8, X6
	POR     X5, X6
	PMOVMSKB X6, AX

	MOVOU   16(SI), X5
	MOVO    X5, X6
	PCMPEQB X0, X6
	MOVO    X5, X7
	PCMPEQB X1, X7
	POR     X7, X6
	MOVO    X5, X8
	PCMPEQB X2, X8
	MOVO    X5, X9
	PCMPEQB X3, X9
	POR     X9, X8
	PCMPEQB X4, X5
	POR     X8, X6
	POR     X5, X6
	PMOVMSKB X6, BX
	SHLQ    $16, BX
	ORQ     BX, AX

	MOVOU   32(SI), X5
	MOVO    X5, X6
	PCMPEQB X0, X6
	MOVO    X5, X7
	PCMPEQB X1, X7
	POR     X7, X6
	MOVO    X5, X8
	PCMPEQB X2, X8
	MOVO    X5, X9
	PCMPEQB X3, X9
	POR     X9, X8
	PCMPEQB X4, X5
	POR     X8, X6
	POR     X5, X6
	PMOVMSKB X6, BX
	SHLQ    $32, BX
	ORQ     BX, AX

	MOVOU   48(SI), X5
	MOVO    X5, X6
	PCMPEQB X0, X6
	MOVO    X5, X7
	PCMPEQB X1, X7
	POR     X7, X6
	MOVO    X5, X8
	PCMPEQB X2, X8
	MOVO    X5, X9
	PCMPEQB X3, X9
	POR     X9, X8
	PCMPEQB X4, X5
	POR     X8, X6
	POR     X5, X6
	PMOVMSKB X6, BX
	SHLQ    $48, BX
	ORQ     BX, AX

	MOVQ AX, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JMP  block

done:
	RET
