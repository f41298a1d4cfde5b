package transfer

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func csvOf(t *testing.T, entries []Entry) string {
	t.Helper()
	var b bytes.Buffer
	w, err := NewCSVWriter(&b)
	for _, e := range entries {
		err = errors.Join(err, w.Write(e))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func readCSV(text string) ([]Entry, error) {
	r, err := NewCSVReader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return readAll(r, nil)
}

func TestCSVIsReadBack(t *testing.T) {
	want := append(someEntries(2000), entry(3, "a,\"b\"", 5), entry(0, "用户", 6), entry(0, "\r\n", 7), entry(0, " ", 8), entry(0, `\.`, 9))
	text := csvOf(t, want)
	if got, err := readCSV(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%d of %d entries, %v", len(got), len(want), err)
	}
	const lines = "db,key,key_base64,tat_ns,kind,payload_base64\n3,\"a,\"\"b\"\"\",,5,,\n0,用户,,6,,\n0,,DQo=,7,,\n"
	if got := csvOf(t, []Entry{entry(3, "a,\"b\"", 5), entry(0, "用户", 6), entry(0, "\r\n", 7)}); got != lines {
		t.Errorf("got %s", got)
	}
}

func TestCSVOfOthers(t *testing.T) {
	one := []Entry{entry(0, "a", 5)}
	for _, tt := range []struct {
		text string
		want []Entry
		err  string
	}{
		{"key,tat_ns\na,5\n", one, ""},
		{"comment,tat_ns,key,db\nhm,5,a,\n", one, ""},
		{"key_base64,tat_ns\r\nYQ==,5\r\n", one, ""},
		{"tat_ns,db,key\n5,65535,\n", []Entry{entry(65535, "", 5)}, ""},
		{"", nil, "the CSV is empty: its first line must name the columns db,key,key_base64,tat_ns"},
		{"key,tat\n", nil, "line 1 must name the columns: tat_ns, and key or key_base64"},
		{"db,tat_ns\n", nil, "line 1 must name the columns: tat_ns, and key or key_base64"},
		{"key,key,tat_ns\n", nil, `line 1: there are two columns "key"`},
		{"key,tat_ns\na,5\nb,17953607", one, "line 3, the last, has no line end: the dump is damaged or truncated"},
		{"key,tat_ns\na\n", nil, "line 2: wrong number of fields"},
		{"key,tat_ns\na,1e9\n", nil, `line 2: tat_ns: "1e9" is not a time in Unix nanoseconds`},
		{"key,tat_ns\na,\n", nil, `line 2: tat_ns: "" is not a time in Unix nanoseconds`},
		{"db,key,tat_ns\n65536,a,5\n", nil, `line 2: db: "65536" is not a database number from 0 to 65535`},
		{"key,key_base64,tat_ns\na,YQ==,5\n", nil, "line 2: a row has key or key_base64, not both"},
		{"key_base64,tat_ns\nY,5\n", nil, `line 2: key_base64: "Y" is not base64`},
		{"key,tat_ns,kind\na,5,funnel\n", one, ""},
		{"key,tat_ns,kind\na,5,cl-nosuch\n", nil, `line 2: kind: "cl-nosuch" is not a kind of limiter that this version knows`},
		{"key,tat_ns,kind,payload_base64\na,5,cl-window,Y\n", nil, `line 2: payload_base64: "Y" is not base64`},
		{"key,tat_ns,kind,payload_base64\na,5,cl-bucket,YQ==\n", nil, "line 2: payload_base64: not the payload of a cl-bucket"},
		{"key,tat_ns,kind,payload_base64\na,5,,YQ==\n", nil, "line 2: payload_base64: not the payload of a funnel"},
		{"key,tat_ns\n\"a,5\n", nil, "line 2: extraneous or missing \" in quoted-field"},
	} {
		got, err := readCSV(tt.text)
		if text := ""; err != nil || tt.err != "" {
			if err != nil {
				text = err.Error()
			}
			if text != tt.err {
				t.Errorf("%q: got error %q, want %q", tt.text, text, tt.err)
			}
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: got %v, want %v", tt.text, got, tt.want)
		}
	}
}

// FuzzCSV: an entry survives being written and read again.
func FuzzCSV(f *testing.F) {
	f.Add("db,key,key_base64,tat_ns\n0,a,,5\n1,,AA==,6\n")
	f.Add("key,tat_ns\n\"a\"\"b\",5")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readCSV(text)
		if err != nil {
			return
		}
		if again, err := readCSV(csvOf(t, got)); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v is read as %v, %v", got, again, err)
		}
	})
}
