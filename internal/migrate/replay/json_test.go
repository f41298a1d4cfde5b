package replay

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestNamesInJSON: no column is lost because an object has two members of one name.
func TestNamesInJSON(t *testing.T) {
	for _, tt := range []struct {
		in, err string
		columns int
	}{
		{"at,key,N,n,,n_base64_base64\n1,a,1,2,3,4\n", "", 6},
		{"at,key,n,limited,limited,n_\n1,a,\xff,x,y,z\n", "", 4}, // results replace columns
		{"at,key,n,n\n1,a,7,z\n", `column "n" appears twice, and --json requires different names: rename one in the header`, 0},
		{"at,key,,\n1,a,7,z\n", `column "" appears twice, and --json requires different names: rename one in the header`, 0},
		{"at,key,x\xff,x\xfe\n1,a,7,z\n", `the name of column "x\xff" is not UTF-8, as --json requires: rename it in the header`, 0},
		{"at,key,n_base64,n\n1,a,7,z\n", `column "n_base64" has the name under which --json writes values of column "n" that are not UTF-8: rename one in the header`, 0},
	} {
		var out strings.Builder
		_, err := RowsInJSON(t.Context(), strings.NewReader(tt.in), &out, Options{MaxBurst: integer(1), Count: integer(1), Period: integer(1)})
		if tt.err != "" {
			checkError(t, err, "replay: "+tt.err)
			if out.Len() > 0 {
				t.Errorf("%q: %s", tt.in, &out)
			}
			continue
		}
		var got struct {
			Rows []struct{ Columns map[string]string }
		}
		checkError(t, err, "")
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got.Rows) != 1 || len(got.Rows[0].Columns) != tt.columns {
			t.Errorf("%q: %v, %s", tt.in, err, &out)
		}
	}
}
