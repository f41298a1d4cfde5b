package lib

import (
	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// maxJSONDepth is cjson's default, both ways.
const maxJSONDepth = 1000

// jsonBytesPerUnit is the number of bytes of text handled in an instruction's time.
const jsonBytesPerUnit = 8

// cjsonLibrary is Redis's JSON library.
type cjsonLibrary struct {
	*vm.Machine
	null *lua.LUserData
}

func OpenCJSON(m *vm.Machine) {
	lib := cjsonLibrary{m, m.L.NewUserData()}
	t := m.OpenLibrary("cjson", vm.Functions{"encode": lib.encode, "decode": lib.decode})
	t.RawSetString("null", lib.null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
}
