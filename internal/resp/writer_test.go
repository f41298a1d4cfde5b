package resp

import (
	"fmt"
	"math"
	"testing"
	"unicode"
)

func TestWriter(t *testing.T) {
	for _, tt := range []struct {
		name  string
		write func(w *Writer)
		resp2 string
		resp3 string // as resp2 where empty
	}{
		{name: "Int", write: func(w *Writer) { w.Int(0); w.Int(-1); w.Int(42) }, resp2: ":0\r\n:-1\r\n:42\r\n"},
		{name: "Int, widest", write: func(w *Writer) { w.Int(math.MaxInt64); w.Int(math.MinInt64) },
			resp2: ":9223372036854775807\r\n:-9223372036854775808\r\n"},
		{name: "Status", write: func(w *Writer) { w.Status("PONG") }, resp2: "+PONG\r\n"},
		{name: "OK", write: (*Writer).OK, resp2: "+OK\r\n"},
		{name: "Error", write: func(w *Writer) { w.Error("ERR syntax error") }, resp2: "-ERR syntax error\r\n"},
		{name: "Error, never two lines", write: func(w *Writer) { w.Error("ERR a\r\n+OK") }, resp2: "-ERR a  +OK\r\n"},
		{name: "Status, never two lines", write: func(w *Writer) { w.Status("a\nb") }, resp2: "+a b\r\n"},
		{name: "Bulk", write: func(w *Writer) { w.Bulk([]byte("a\r\n\x00")) }, resp2: "$4\r\na\r\n\x00\r\n"},
		{name: "Bulk, empty", write: func(w *Writer) { w.Bulk(nil) }, resp2: "$0\r\n\r\n"},
		{name: "BulkString", write: func(w *Writer) { w.BulkString("redis"); w.BulkString("") }, resp2: "$5\r\nredis\r\n$0\r\n\r\n"},
		{name: "Array", write: func(w *Writer) { w.Array(2); w.Array(0); w.Int(1) }, resp2: "*2\r\n*0\r\n:1\r\n"},
		{name: "Map", write: func(w *Writer) { w.Map(1); w.BulkString("k"); w.Int(1) },
			resp2: "*2\r\n$1\r\nk\r\n:1\r\n", resp3: "%1\r\n$1\r\nk\r\n:1\r\n"},
		{name: "Map, empty", write: func(w *Writer) { w.Map(0) }, resp2: "*0\r\n", resp3: "%0\r\n"},
		{name: "Set", write: func(w *Writer) { w.Set(10) }, resp2: "*10\r\n", resp3: "~10\r\n"},
		{name: "Set, empty", write: func(w *Writer) { w.Set(0) }, resp2: "*0\r\n", resp3: "~0\r\n"},
		{name: "Null", write: (*Writer).Null, resp2: "$-1\r\n", resp3: "_\r\n"},
		{name: "NullArray", write: (*Writer).NullArray, resp2: "*-1\r\n", resp3: "_\r\n"},
		{name: "Bool", write: func(w *Writer) { w.Bool(true); w.Bool(false) }, resp2: ":1\r\n:0\r\n", resp3: "#t\r\n#f\r\n"},
		{name: "Double", write: func(w *Writer) { w.Double(0.1); w.Double(-1234.5625) },
			resp2: "$3\r\n0.1\r\n$10\r\n-1234.5625\r\n", resp3: ",0.1\r\n,-1234.5625\r\n"},
		{name: "Double, widest", write: func(w *Writer) { w.Double(math.MaxFloat64) },
			resp2: "$23\r\n1.7976931348623157e+308\r\n", resp3: ",1.7976931348623157e+308\r\n"},
		{name: "BigNumber", write: func(w *Writer) { w.BigNumber("-12345678901234567890") },
			resp2: "$21\r\n-12345678901234567890\r\n", resp3: "(-12345678901234567890\r\n"},
		{name: "Attribute", write: func(w *Writer) { w.Attribute(2) }, resp2: "|2\r\n"},
		{name: "Push", write: func(w *Writer) { w.Push(3) }, resp2: "*3\r\n", resp3: ">3\r\n"},
		{name: "Verbatim", write: func(w *Writer) { w.Verbatim("a:1\r\n") },
			resp2: "$5\r\na:1\r\n\r\n", resp3: "=9\r\ntxt:a:1\r\n\r\n"},
		{name: "Verbatim, empty", write: func(w *Writer) { w.Verbatim("") }, resp2: "$0\r\n\r\n", resp3: "=4\r\ntxt:\r\n"},
		{name: "appends", write: func(w *Writer) { w.Buf = append(w.Buf, "before"...); w.Map(1) },
			resp2: "before*2\r\n", resp3: "before%1\r\n"},
	} {
		two, three := Writer{}, Writer{RESP3: true}
		tt.write(&two)
		tt.write(&three)
		if tt.resp3 == "" {
			tt.resp3 = tt.resp2
		}
		if string(two.Buf) != tt.resp2 || string(three.Buf) != tt.resp3 {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.name, two.Buf, three.Buf, tt.resp2, tt.resp3)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ bytes, want string }{
		{"laoqian:reply", "laoqian:reply"},
		{`it's "so"`, `it's "so"`},
		{`a\b`, `a\b`},
		{"键", "键"},
		{"<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"},
		{"", `""`},
		{`"`, `"\""`},
		{`"a\`, `"\"a\\"`},
		{" a", `" a"`},
		{"a ", `"a "`},
		{"a\r\nb", `"a\x0d\x0ab"`},
		{"\x00\xff", `"\x00\xff"`},
		{"a\u202eb", `"a\xe2\x80\xaeb"`}, // would reverse the text direction
	} {
		if got := Quote([]byte(tt.bytes)); got != tt.want {
			t.Errorf("Quote(%q) = %s, want %s", tt.bytes, got, tt.want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, tt := range []struct {
		word, want string
		ok         bool
	}{
		{"", "", true},
		{"a b", "a b", true},
		{`a\x41`, `a\x41`, true},
		{`"a\x41\n"`, "aA\n", true},
		{`""`, "", true},
		{`"`, "", false},
		{`"a`, "", false},
		{`"a" `, "", false},
		{`"a"b`, "", false},
		{`"a\"`, "", false},
	} {
		if got, ok := Unquote(tt.word); ok != tt.ok || ok && string(got) != tt.want {
			t.Errorf("Unquote(%q) = %q, %v; want %q, %v", tt.word, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "a", `"`, `\`, "\xff\x00", " ", "键\u202e"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		quoted := Quote(b)
		for _, r := range quoted {
			if !unicode.IsPrint(r) {
				t.Fatalf("Quote(%q) = %q has %q", b, quoted, r)
			}
		}
		if got, ok := Unquote(quoted); !ok || string(got) != string(b) {
			t.Fatalf("%q is quoted as %s, which is read as %q, %v", b, quoted, got, ok)
		}
		_, _ = Unquote(string(b))
	})
}

// TestIntegers compares the short ways of writing numbers with fmt's.
func TestIntegers(t *testing.T) {
	for n := int64(-20_000); n <= 20_000; n++ {
		w := Writer{}
		if w.Int(n); string(w.Buf) != fmt.Sprintf(":%d\r\n", n) {
			t.Fatalf("%d: got %q", n, w.Buf)
		}
	}
}
