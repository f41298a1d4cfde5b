package namedlimit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// OptionUsage is the usage of the words behind the rules of a command that defines a limit, in any order.
const OptionUsage = "[UNIT usd] [MAXRESERVATION share] [SHADOW]"

// CheckUnit returns an error for an unknown unit, as a file or a command has it.
func CheckUnit(unit string) error {
	if unit != USD {
		return fmt.Errorf("unit must be usd, of which integers are millionths, or be left out, got '%s'", unit)
	}
	return nil
}

// ReadShare reads the share of a limit's smallest capacity that a hold may have.
func ReadShare(text string) (float64, error) {
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !isShare(share) {
		return 0, fmt.Errorf("max_reservation must be above 0 and at most 1, such as 0.5, got '%s'", text)
	}
	return share, nil
}

func isShare(share float64) bool { return share > 0 && share <= 1 }

// ShareText returns a share as ReadShare reads it.
func ShareText(share float64) string { return strconv.FormatFloat(share, 'f', -1, 64) }

// checkOptions checks what a definition has beside its policies.
func (d *Definition) checkOptions() error {
	if !isShare(d.Near) {
		return fmt.Errorf("near must be above 0 and at most 1, got %v", d.Near)
	}
	if d.Unit != "" {
		if err := CheckUnit(d.Unit); err != nil {
			return err
		}
	}
	if d.MaxReservation != 0 && !isShare(d.MaxReservation) {
		return fmt.Errorf("max_reservation must be above 0 and at most 1, got %v", d.MaxReservation)
	}
	return nil
}

// agree takes the options that are left out from the definition before, and refuses to change the rules or
// another option than Shadow.
func (d *Definition) agree(before *Definition) error {
	d.Unit, d.MaxReservation = cmp.Or(d.Unit, before.Unit), cmp.Or(d.MaxReservation, before.MaxReservation)
	switch {
	case !slices.Equal(before.Rules, d.Rules):
		return fmt.Errorf("the limit '%s' does not have these rules; nothing was changed", d.Name)
	case !slices.Equal(before.OptionWords(), d.OptionWords()):
		return fmt.Errorf("the limit '%s' has another unit or max_reservation; nothing was changed", d.Name)
	}
	return nil
}

// OptionWords returns the options as a command takes them, but for SHADOW.
func (d *Definition) OptionWords() (words []string) {
	if d.Unit != "" {
		words = append(words, "UNIT", d.Unit)
	}
	if d.MaxReservation != 0 {
		words = append(words, "MAXRESERVATION", ShareText(d.MaxReservation))
	}
	return words
}

// IsOption reports whether a word begins an option.
func IsOption(word []byte) bool {
	switch strings.ToUpper(string(word)) {
	case "SHADOW", "UNIT", "MAXRESERVATION":
		return true
	}
	return false
}

// ReadOptions reads the words behind a definition's policy, and returns those from the first on that is
// unknown or given twice.
func (d *Definition) ReadOptions(words []string) (rest []string, err error) {
	for len(words) > 0 {
		switch option := strings.ToUpper(words[0]); {
		case option == "SHADOW" && !d.Shadow:
			d.Shadow, words = true, words[1:]
			continue
		case option == "UNIT" && d.Unit == "":
			if len(words) < 2 {
				return nil, errors.New("UNIT needs a value; write UNIT usd")
			}
			d.Unit = strings.ToLower(words[1])
			err = CheckUnit(d.Unit)
		case option == "MAXRESERVATION" && d.MaxReservation == 0:
			if len(words) < 2 {
				return nil, errors.New("MAXRESERVATION needs a share, such as 0.5")
			}
			d.MaxReservation, err = ReadShare(words[1])
		default:
			return words, nil
		}
		if err != nil {
			return nil, err
		}
		words = words[2:]
	}
	return nil, nil
}
