package namedlimit

import (
	"strconv"
	"strings"
)

// USD is the unit of a limit whose integers are millionths of a dollar.
const USD = "usd"

// Dollars returns millionths of a dollar as people read them, $12.34, cut off after the cents. Less than a
// cent has as many digits as it needs, so that nothing but zero is $0.00.
func Dollars(micros int64) string {
	const microsPerCent, centsPerDollar = 10_000, 100
	sign, n := "", uint64(micros)
	if micros < 0 {
		sign, n = "-", -n
	}
	cents := n / microsPerCent
	if cents == 0 && n > 0 {
		return sign + "$0." + strings.TrimRight(digits(n, 6), "0")
	}
	whole := digits(cents/centsPerDollar, 1)
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return sign + "$" + whole + "." + digits(cents%centsPerDollar, 2)
}

// digits pads a number with zeros to a least number of digits.
func digits(n uint64, least int) string {
	text := strconv.FormatUint(n, 10)
	return strings.Repeat("0", max(0, least-len(text))) + text
}
