package lua

import (
	"math"

	vm "github.com/yuin/gopher-lua"
)

func (st *state) openMath() {
	lib := library{
		"frexp":      st.mathFrexp,
		"ldexp":      st.mathLdexp,
		"max":        func(l *vm.LState) int { return st.mathExtreme(l, func(a, b float64) bool { return a > b }) },
		"min":        func(l *vm.LState) int { return st.mathExtreme(l, func(a, b float64) bool { return a < b }) },
		"modf":       st.mathModf,
		"random":     st.mathRandom,
		"randomseed": func(l *vm.LState) int { st.rng.seed(uint32(st.checkInt(l, 1))); return 0 },
	}
	for name, f := range map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos,
		"cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": math.Log10, "sin": math.Sin,
		"sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
		"deg": func(f float64) float64 { return f / (math.Pi / 180) },
		"rad": func(f float64) float64 { return f * (math.Pi / 180) },
	} {
		lib[name] = func(l *vm.LState) int {
			l.Push(vm.LNumber(f(st.checkNumber(l, 1))))
			return 1
		}
	}
	for name, f := range map[string]func(a, b float64) float64{
		"atan2": math.Atan2, "fmod": math.Mod, "mod": math.Mod, "pow": math.Pow,
	} {
		lib[name] = func(l *vm.LState) int {
			l.Push(vm.LNumber(f(st.checkNumber(l, 1), st.checkNumber(l, 2))))
			return 1
		}
	}
	t := st.openLibrary("math", lib)
	t.RawSetString("pi", vm.LNumber(math.Pi))
	t.RawSetString("huge", vm.LNumber(math.Inf(1)))
}

func (st *state) mathFrexp(l *vm.LState) int {
	fraction, exponent := math.Frexp(st.checkNumber(l, 1))
	l.Push(vm.LNumber(fraction))
	l.Push(vm.LNumber(exponent))
	return 2
}

func (st *state) mathLdexp(l *vm.LState) int {
	l.Push(vm.LNumber(math.Ldexp(st.checkNumber(l, 1), min(max(st.checkInt(l, 2), -5000), 5000))))
	return 1
}

func (st *state) mathModf(l *vm.LState) int {
	f := st.checkNumber(l, 1)
	whole, fraction := math.Modf(f)
	if math.IsInf(f, 0) {
		fraction = 0
	}
	l.Push(vm.LNumber(whole))
	l.Push(vm.LNumber(fraction))
	return 2
}

func (st *state) mathExtreme(l *vm.LState, better func(a, b float64) bool) int {
	best := st.checkNumber(l, 1)
	for i := 2; i <= l.GetTop(); i++ {
		if f := st.checkNumber(l, i); better(f, best) {
			best = f
		}
	}
	l.Push(vm.LNumber(best))
	return 1
}

func (st *state) mathRandom(l *vm.LState) int {
	r := float64(st.rng.next()%math.MaxInt32) / math.MaxInt32
	low, high := 1.0, 0.0
	switch l.GetTop() {
	case 0:
		l.Push(vm.LNumber(r))
		return 1
	case 1:
		high = float64(st.checkInt(l, 1))
		if high < 1 {
			st.raiseArgument(l, 1, "interval is empty")
		}
	case 2:
		low, high = float64(st.checkInt(l, 1)), float64(st.checkInt(l, 2))
		if high < low {
			st.raiseArgument(l, 2, "interval is empty")
		}
	default:
		st.raise(l, "wrong number of arguments")
	}
	l.Push(vm.LNumber(math.Floor(r*(high-low+1)) + low))
	return 1
}

// A random is POSIX's lrand48, the generator of Redis's scripts. Every run starts it like a new server of Redis does.
type random struct{ x uint64 }

func (r *random) reset() { r.x = 0x1234abcd330e }

func (r *random) seed(n uint32) { r.x = uint64(n)<<16 | 0x330e }

func (r *random) next() int64 {
	r.x = (r.x*0x5deece66d + 0xb) & (1<<48 - 1)
	return int64(r.x >> 17)
}
