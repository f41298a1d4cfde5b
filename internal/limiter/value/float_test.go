package value

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestAddFloat has what redis-server 7.0 replies on x86-64.
func TestAddFloat(t *testing.T) {
	for _, tt := range []struct{ old, by, want string }{
		{"10.50", "0.1", "10.6"},
		{"10.6", "-5", "5.6"},
		{"5.0e3", "2.0e2", "5200"},
		{"0.1", "0.2", "0.3"},
		{"3", "1.000000000000000005", "4.00000000000000001"},
		{"1", "1e-17", "1.00000000000000001"},
		{"1", "1e-19", "1"},
		{"0", "-0", "0"},
		{"-0.1", "0.1", "0"},
		{"0x10", "0X1.8p1", "19"},
		{"0", "1e17", "100000000000000000"},
		{"18446744073709551615", "1", "18446744073709551616"},
		{".5", "5.", "5.5"},
		{"1e-5000", "1", "not read"},
		{"1e5000", "1", "not read"},
		{"inf", "1", "not finite"},
		{"1", "-Infinity", "not finite"},
		{"1.1e4932", "1.1e4932", "not finite"},
		{"nan", "1", "not read"},
		{" 1", "1", "not read"},
		{"1 ", "1", "not read"},
		{"", "1", "not read"},
		{".", "1", "not read"},
		{"0x", "1", "not read"},
		{"1e", "1", "not read"},
		{"1_0", "1", "not read"},
		{"1/2", "1", "not read"},
		{strings.Repeat("0", mostFloatBytes), "1", "1"},
		{strings.Repeat("0", mostFloatBytes+1), "1", "not read"},
	} {
		if got := sumOf(tt.old, tt.by); got != tt.want {
			t.Errorf("%.30s + %s: %.60s, want %s", tt.old, tt.by, got, tt.want)
		}
	}
	counter, _ := FloatOf(AppendCounter(nil, 1<<53+1))
	if got, err := AddFloat(counter, Float{}); string(got) != "9007199254740993" || err != nil {
		t.Errorf("a counter: %s, %v", got, err)
	}
}

func sumOf(old, by string) string {
	a, okA := FloatOf(Append(nil, []byte(old)))
	b, okB := ParseFloat([]byte(by))
	if !okA || !okB {
		return "not read"
	}
	text, err := AddFloat(a, b)
	if err != nil {
		return "not finite"
	}
	return string(text)
}

// oracle reads a number exactly and rounds it once; ok is false for what is none, or has a large exponent.
func oracle(text string) (f *big.Float, ok bool) {
	number := regexp.MustCompile(`^[-+]?(0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][-+]?[0-9]{1,3})?|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?)$`)
	if !number.MatchString(text) {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(strings.TrimPrefix(text, "+"))
	if !ok {
		return nil, false
	}
	f = new(big.Float).SetPrec(mantissaBits).SetRat(r)
	if r.Sign() == 0 && text[0] == '-' {
		f.Neg(f)
	}
	return f, true
}

// FuzzAddFloat compares sums with those of exact numbers, each rounded once.
func FuzzAddFloat(f *testing.F) {
	for _, text := range []string{"0.1", "-0", "1e-70", "123456789012345678901234567890.5", "0x1.8p-3", "-1e300", "5.", ".5", "1e-17",
		"0." + strings.Repeat("0", 70) + "1", "1" + strings.Repeat("0", 70) + "1"} {
		f.Add(text, "1")
		f.Add("-0.3", text)
	}
	f.Fuzz(func(t *testing.T, old, by string) {
		if len(old) > 300 || len(by) > 300 {
			return
		}
		a, okA := oracle(old)
		b, okB := oracle(by)
		if !okA || !okB {
			_ = sumOf(old, by) // it may be anything but a panic
			return
		}
		sum := new(big.Float).SetPrec(mantissaBits).Add(a, b)
		want := strings.TrimSuffix(strings.TrimRight(sum.Text('f', printedDigits), "0"), ".")
		if want == "-0" {
			want = "0"
		}
		if got := sumOf(old, by); got != want {
			t.Fatalf("%s + %s: %s, want %s", strconv.Quote(old), by, got, want)
		}
		if again := sumOf(want, "0"); again != want && len(want) < mantissaBits/4 {
			t.Fatalf("%s + 0: %s", want, again)
		}
	})
}
