package argument

import (
	"cellserver/internal/funnel"
	"cellserver/internal/glob"
	"cellserver/internal/limits"
	"cellserver/internal/reply"
)

// Definition reads the arguments of CL.LIMIT SET.
func Definition(args [][]byte, reading funnel.Reading) (d limits.Definition, err error) {
	d.Name, args = string(args[2]), args[3:]
	if last := len(args) - 1; glob.Fold(args[last]) == "shadow" {
		d.Shadow, args = true, args[:last]
	}
	if err := limits.CheckName([]byte(d.Name)); err != nil {
		return d, reply.Error("ERR " + err.Error())
	}
	const numbers = 3 // of a window
	if len(args)%numbers != 0 || len(args) > limits.MaxWindows*numbers {
		return d, reply.Error("ERR Usage: cl.limit set <name> <max_burst> <count per period> <period> ... [SHADOW], of 1 to 16 windows")
	}
	for ; len(args) > 0; args = args[numbers:] {
		var window [numbers]int64
		if err := Numbers(window[:], args); err != nil {
			return d, err
		}
		w, err := limits.NewWindow(reading, window[0], window[1], window[2])
		if err != nil {
			return d, err
		}
		d.Windows = append(d.Windows, w)
	}
	return d, nil
}
