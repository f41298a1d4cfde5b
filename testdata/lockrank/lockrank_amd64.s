// func goroutine() uintptr
TEXT ·goroutine(SB), 4, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
