package lib

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// openBit is the bit library: numbers are taken modulo 2^32, results are signed.
func (lib mathLibrary) openBit() {
	functions := vm.Functions{
		"bnot":  func(l *lua.LState) int { return pushBits(l, ^lib.checkBits(l, 1)) },
		"bswap": func(l *lua.LState) int { return pushBits(l, bits.ReverseBytes32(lib.checkBits(l, 1))) },
		"tobit": func(l *lua.LState) int { return pushBits(l, lib.checkBits(l, 1)) },
		"tohex": lib.bitToHex,
	}
	for name, f := range map[string]func(a, b uint32) uint32{
		"band": func(a, b uint32) uint32 { return a & b },
		"bor":  func(a, b uint32) uint32 { return a | b },
		"bxor": func(a, b uint32) uint32 { return a ^ b },
	} {
		functions[name] = func(l *lua.LState) int {
			n := lib.checkBits(l, 1)
			for i := 2; i <= l.GetTop(); i++ {
				n = f(n, lib.checkBits(l, i))
			}
			return pushBits(l, n)
		}
	}
	for name, f := range map[string]func(n uint32, by int) uint32{
		"lshift":  func(n uint32, by int) uint32 { return n << by },
		"rshift":  func(n uint32, by int) uint32 { return n >> by },
		"arshift": func(n uint32, by int) uint32 { return uint32(int32(n) >> by) },
		"rol":     bits.RotateLeft32,
		"ror":     func(n uint32, by int) uint32 { return bits.RotateLeft32(n, -by) },
	} {
		functions[name] = func(l *lua.LState) int {
			return pushBits(l, f(lib.checkBits(l, 1), int(lib.checkBits(l, 2)&31)))
		}
	}
	lib.OpenLibrary("bit", functions)
}

func (lib mathLibrary) checkBits(l *lua.LState, n int) uint32 {
	f := math.RoundToEven(lib.CheckNumber(l, n))
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return uint32(int64(math.Mod(f, 1<<32)))
}

func pushBits(l *lua.LState, n uint32) int {
	l.Push(lua.LNumber(int32(n)))
	return 1
}

func (lib mathLibrary) bitToHex(l *lua.LState) int {
	n, digits := lib.checkBits(l, 1), lib.OptInt(l, 2, 8)
	text := fmt.Sprintf("%08x", n)
	if digits < 0 {
		text, digits = strings.ToUpper(text), -digits
	}
	return lib.PushText(l, []byte(text[8-min(digits, 8):]))
}
