package value

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		text, encoding string
		bytes          int // of the payload
	}{
		{"", "embstr", 0}, {"5", "int", 8}, {"0", "int", 8}, {"-1", "int", 8}, {"-0", "embstr", 2}, {"+5", "embstr", 2}, {"05", "embstr", 2},
		{" 5", "embstr", 2}, {"5.0", "embstr", 3}, {"9223372036854775807", "int", 8}, {"-9223372036854775808", "int", 8},
		{"9223372036854775808", "embstr", 20}, {"seven..", "embstr", 7}, {"8 bytes.", "embstr", 9}, {"nine byte", "embstr", 10},
		{strings.Repeat("x", 44), "embstr", 45}, {strings.Repeat("x", 45), "raw", 46},
	} {
		payload := Append([]byte("before"), []byte(tt.text))[len("before"):]
		if got := string(AppendTo(nil, payload)); got != tt.text || len(payload) != tt.bytes || Encoding(payload) != tt.encoding || IsCounter(payload) != (tt.encoding == "int") {
			t.Errorf("%q: %q of %d bytes, %s", tt.text, got, len(payload), Encoding(payload))
		}
	}
}

func TestAdd(t *testing.T) {
	for _, tt := range []struct {
		text string
		by   int64
		want string
		err  error
	}{
		{"0", 1, "1", nil},
		{"5", -7, "-2", nil},
		{"5", 0, "5", nil},
		{"9223372036854775806", 1, "9223372036854775807", nil},
		{"9223372036854775807", 1, "", ErrOverflow},
		{"9223372036854775807", 0, "9223372036854775807", nil},
		{"-9223372036854775808", -1, "", ErrOverflow},
		{"-9223372036854775808", 0, "-9223372036854775808", nil},
		{"-1", math.MinInt64, "", ErrOverflow},
		{"0", math.MinInt64, "-9223372036854775808", nil},
		{"", 1, "", ErrNotInteger},
		{"5.0", 1, "", ErrNotInteger},
		{"hello world", 1, "", ErrNotInteger},
	} {
		payload, n, err := Add(Append(nil, []byte(tt.text)), tt.by)
		if !errors.Is(err, tt.err) || err == nil && (string(AppendTo(nil, payload)) != tt.want || strconv.FormatInt(n, 10) != tt.want) {
			t.Errorf("%s + %d: %d, %v, want %s, %v", tt.text, tt.by, n, err, tt.want, tt.err)
		}
	}
}

// TestAddInPlace: a counter's payload is reused, and a text's, which others may read, is not.
func TestAddInPlace(t *testing.T) {
	counter, text := AppendCounter(nil, 41), AppendText(nil, []byte("41"))
	if sum, _, _ := Add(counter, 1); &sum[0] != &counter[0] || string(AppendTo(nil, counter)) != "42" {
		t.Errorf("the counter is %s", AppendTo(nil, counter))
	}
	if sum, n, err := Add(text, 1); n != 42 || err != nil || !IsCounter(sum) || string(text) != "41" {
		t.Errorf("%d, %v, and the text is %q", n, err, text)
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = Add(counter, 1) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// integerOf is the oracle of integers: those that are printed as they are written.
func integerOf(text string) (*big.Int, bool) {
	n, ok := new(big.Int).SetString(text, 10)
	return n, ok && n.IsInt64() && n.String() == text
}

// FuzzValue re-encodes texts to the same bytes, and adds as big integers do.
func FuzzValue(f *testing.F) {
	for _, text := range []string{"", "5", "-0", "9223372036854775807", "seven..", "8 bytes.", "nine byte"} {
		f.Add([]byte(text), int64(1))
	}
	f.Add([]byte("-9223372036854775808"), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, text []byte, by int64) {
		payload, asText := Append(nil, text), AppendText(nil, text)
		for _, p := range [][]byte{payload, asText} {
			if got := AppendTo(nil, p); !bytes.Equal(got, text) || !bytes.Equal(Append(nil, got), payload) {
				t.Fatalf("%q is %q, and again %q", text, got, Append(nil, got))
			}
		}
		old, isInteger := integerOf(string(text))
		if isInteger != IsCounter(payload) || IsCounter(asText) {
			t.Fatalf("%q: a counter %t", text, IsCounter(payload))
		}
		_, fromText, errOfText := Add(asText, by)
		sum, n, err := Add(payload, by)
		if n != fromText || !errors.Is(errOfText, err) {
			t.Fatalf("%q + %d: %d, %v, and of a text %d, %v", text, by, n, err, fromText, errOfText)
		}
		if !isInteger {
			if !errors.Is(err, ErrNotInteger) {
				t.Fatalf("%q + %d: %v", text, by, err)
			}
			return
		}
		if want := old.Add(old, big.NewInt(by)); want.IsInt64() != (err == nil) ||
			err == nil && (n != want.Int64() || string(AppendTo(nil, sum)) != want.String()) {
			t.Fatalf("%q + %d: %d, %v, want %s", text, by, n, err, want)
		}
	})
}

// TestBounded adds as big integers do, at and around the bounds and the ends of 64 bits.
func TestBounded(t *testing.T) {
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -7, -1, 0, 1, 5, 7, math.MaxInt64 - 1, math.MaxInt64}
	for _, n := range edges {
		for _, by := range edges {
			for _, least := range edges {
				for _, most := range edges {
					if least > most {
						continue
					}
					exact, low, high := new(big.Int).Add(big.NewInt(n), big.NewInt(by)), big.NewInt(least), big.NewInt(most)
					inside := exact.Cmp(low) >= 0 && exact.Cmp(high) <= 0
					if exact.Cmp(low) < 0 {
						exact = low
					} else if exact.Cmp(high) > 0 {
						exact = high
					}
					if sum, ok := Bounded(n, by, least, most, true); !ok || sum != exact.Int64() {
						t.Fatalf("%d + %d from %d to %d: %d, %t", n, by, least, most, sum, ok)
					}
					if sum, ok := Bounded(n, by, least, most, false); ok != inside || ok && sum != exact.Int64() {
						t.Fatalf("%d + %d within %d and %d: %d, %t", n, by, least, most, sum, ok)
					}
				}
			}
		}
	}
}
