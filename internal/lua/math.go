package lua

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// A mathLibrary is Lua's math library, and LuaJIT's bit library.
type mathLibrary struct {
	*vm.Machine
	random *random
}

// openMath makes the tables math and bit global, and returns the generator of math.random.
func openMath(m *vm.Machine) *random {
	lib := mathLibrary{m, &random{}}
	lib.openMath()
	lib.openBit()
	return lib.random
}

func (lib mathLibrary) openMath() {
	functions := vm.Functions{
		"frexp":      lib.frexp,
		"ldexp":      lib.ldexp,
		"max":        func(l *lua.LState) int { return lib.extreme(l, func(a, b float64) bool { return a > b }) },
		"min":        func(l *lua.LState) int { return lib.extreme(l, func(a, b float64) bool { return a < b }) },
		"modf":       lib.modf,
		"random":     lib.draw,
		"randomseed": func(l *lua.LState) int { lib.random.seed(uint32(lib.CheckInt(l, 1))); return 0 },
	}
	for name, f := range map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos,
		"cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": math.Log10, "sin": math.Sin,
		"sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
		"deg": func(f float64) float64 { return f / (math.Pi / 180) },
		"rad": func(f float64) float64 { return f * (math.Pi / 180) },
	} {
		functions[name] = func(l *lua.LState) int {
			return vm.Return(l, lua.LNumber(f(lib.CheckNumber(l, 1))))
		}
	}
	for name, f := range map[string]func(a, b float64) float64{
		"atan2": math.Atan2, "fmod": lib.remainder, "mod": lib.remainder, "pow": math.Pow,
	} {
		functions[name] = func(l *lua.LState) int {
			return vm.Return(l, lua.LNumber(f(lib.CheckNumber(l, 1), lib.CheckNumber(l, 2))))
		}
	}
	t := lib.OpenLibrary("math", functions)
	t.RawSetString("pi", lua.LNumber(math.Pi))
	t.RawSetString("huge", lua.LNumber(math.Inf(1)))
}

// remainder spends a step for each bit by which the operands differ in size.
func (lib mathLibrary) remainder(a, b float64) float64 {
	_, sizeA := math.Frexp(a)
	_, sizeB := math.Frexp(b)
	lib.Meter.Spend(max(sizeA-sizeB, 0) >> 1)
	return math.Mod(a, b)
}

func (lib mathLibrary) frexp(l *lua.LState) int {
	fraction, exponent := math.Frexp(lib.CheckNumber(l, 1))
	return vm.Return(l, lua.LNumber(fraction), lua.LNumber(exponent))
}

func (lib mathLibrary) ldexp(l *lua.LState) int {
	return vm.Return(l, lua.LNumber(math.Ldexp(lib.CheckNumber(l, 1), min(max(lib.CheckInt(l, 2), -5000), 5000))))
}

func (lib mathLibrary) modf(l *lua.LState) int {
	f := lib.CheckNumber(l, 1)
	whole, fraction := math.Modf(f)
	if math.IsInf(f, 0) {
		fraction = 0
	}
	return vm.Return(l, lua.LNumber(whole), lua.LNumber(fraction))
}

func (lib mathLibrary) extreme(l *lua.LState, better func(a, b float64) bool) int {
	best := lib.CheckNumber(l, 1)
	for i := 2; i <= l.GetTop(); i++ {
		if f := lib.CheckNumber(l, i); better(f, best) {
			best = f
		}
	}
	return vm.Return(l, lua.LNumber(best))
}

func (lib mathLibrary) draw(l *lua.LState) int {
	r := float64(lib.random.next()%math.MaxInt32) / math.MaxInt32
	low, high := 1.0, 0.0
	switch l.GetTop() {
	case 0:
		return vm.Return(l, lua.LNumber(r))
	case 1:
		high = float64(lib.CheckInt(l, 1))
		if high < 1 {
			lib.RaiseArgument(l, 1, "interval is empty")
		}
	case 2:
		low, high = float64(lib.CheckInt(l, 1)), float64(lib.CheckInt(l, 2))
		if high < low {
			lib.RaiseArgument(l, 2, "interval is empty")
		}
	default:
		lib.Raise(l, "wrong number of arguments")
	}
	return vm.Return(l, lua.LNumber(math.Floor(r*(high-low+1))+low))
}

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
	return vm.Return(l, lua.LNumber(int32(n)))
}

func (lib mathLibrary) bitToHex(l *lua.LState) int {
	n, digits := lib.checkBits(l, 1), lib.OptInt(l, 2, 8)
	text := fmt.Sprintf("%08x", n)
	if digits < 0 {
		text, digits = strings.ToUpper(text), -digits
	}
	return lib.PushText(l, []byte(text[8-min(digits, 8):]))
}

// random is POSIX's lrand48, the generator of Redis's scripts. Every run starts it randomly; after
// math.randomseed, numbers are Redis's.
type random struct{ x uint64 }

// Reset starts a run's generator.
func (r *random) Reset() { r.x = rand.Uint64() & (1<<48 - 1) }

func (r *random) seed(n uint32) { r.x = uint64(n)<<16 | 0x330e }

func (r *random) next() int64 {
	r.x = (r.x*0x5deece66d + 0xb) & (1<<48 - 1)
	return int64(r.x >> 17)
}
