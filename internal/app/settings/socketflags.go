package settings

import (
	"io/fs"
	"strconv"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

func (o *Options) defineSocketMode(flags *pflag.FlagSet) {
	text := ""
	flagvalue.FuncVar(flags, flagvalue.Func{
		Kind: "permissions", Takes: "octal permissions from 1 to 777, such as 700", Get: func() string { return text },
		Set: func(given string) bool {
			mode, err := strconv.ParseUint(given, 8, 32)
			if given != "" && (err != nil || mode < 1 || mode > 0o777) {
				return false
			}
			o.SocketMode, text = fs.FileMode(mode), given
			return true
		},
	}, "unixsocketperm", "octal `permissions` of the unix socket, such as 700 (default set by the umask)")
}
