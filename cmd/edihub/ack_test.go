package main

import (
	"path/filepath"
	"strings"
	"testing"
)

const (
	ackISA = "ISA*00*          *00*          *ZZ*ALPHA          *ZZ*BETA           *260301*1200*U*00401*000000001*0*T*>~"
	ackGS  = "GS*PO*ALPHA*BETA*20260301*1200*7*X*004010~"
	ackSet = "ST*850*0001~BEG*00*SA*PO77**20260301~PO1*1*5*EA*9.25**VN*W-1~SE*4*0001~"
	ackEnd = "GE*1*7~IEA*1*000000001~"
	ackIn  = ackISA + ackGS + ackSet + ackEnd
)

func ackOrders(ref string) string {
	return "UNB+UNOA:3+ALPHA:ZZ+BETA:ZZ+260301:1200+" + ref + "'UNH+1+ORDERS:D:96A:UN'BGM+220+PO1+9'DTM+137:20260301:102'NAD+BY+5412345000013::9'LIN+1++4000862141404:EN'QTY+21:5'UNS+S'UNT+8+1'UNZ+1+" + ref + "'"
}

func TestAck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		args     []string
		code     int
		want     []string
	}{
		{"EDIFACT", ackOrders("R1"), nil, 0, []string{"UNB+UNOA:3+BETA:ZZ+ALPHA:ZZ+", "UNH+1+CONTRL:D:3:UN'UCI+R1+ALPHA:ZZ+BETA:ZZ+7'UNT+3+1'UNZ+1+1'\n"}},
		{"EDIFACT, refused", strings.Replace(ackOrders("R1"), "UNT+8", "UNT+9", 1), nil, 1, []string{"+7'UCM+1+ORDERS:D:96A:UN+4+29+UNT+2'"}},
		{"on reject", strings.Replace(ackOrders("R1"), "QTY+21:5", "QTY+21:5X", 1), []string{"--on-reject", "interchange"}, 1, []string{"+4'UCM+1+", "UCS+6'UCD+37+2:2'"}},
		{"two interchanges", ackOrders("R1") + "\n" + ackOrders("R2"), []string{"--type", "contrl", "--control-ref", "41"}, 0, []string{"UCI+R1+", "UNZ+1+41'\n", "UCI+R2+", "UNZ+1+42'\n"}},
		{"X12", ackIn, nil, 0, []string{"AK1*PO*7~AK2*850*0001~AK5*A~AK9*A*1*1*1~", "IEA*1*000000001~\n"}},
		{"E08, without accepted sets", strings.Replace(ackIn, "SE*4", "SE*11", 1), []string{"--accepted-loops=false"}, 1, []string{"AK5*R*4~AK9*R*1*1*0~"}},
		{"X12, ISA14 asks", strings.Replace(ackIn, "*0*T*", "*1*T*", 1), nil, 0, []string{"TA1*000000001*260301*1200*A*000~GS*FA*"}},
		{"X12, envelope refused", strings.Replace(ackIn, "IEA*1", "IEA*2", 1), nil, 1, []string{"*R*021~IEA*0*000000001~\n"}},
		{"999", ackIn, []string{"--type", "999", "--line-break", "lf", "--group-ref", "12"}, 0, []string{"GS*FA*BETA*ALPHA*", "*12*X*005010X231A1~\nST*999*0001*005010X231A1~\n", "IK5*A~\n"}},
		{"TA1", ackIn, []string{"--type", "ta1"}, 0, []string{"*A*000~IEA*0*000000001~\n"}},
		{"no groups", ackISA + "IEA*0*000000001~", nil, 0, []string{"*A*000~IEA*0*"}},
		{"no groups, 997", ackISA + "IEA*0*000000001~", []string{"--type", "997"}, 1, []string{"use --type ta1"}},
		{"an acknowledgement", ackISA + "TA1*000000007*260228*0900*A*000~IEA*0*000000001~", nil, 0, []string{"never acknowledged"}},
		{"no header", "UNA:+.? 'UNH+1+ORDERS:D:96A:UN'UNT+2+1'", nil, 1, []string{"no UNB or ISA"}},
		{"neither", "<Invoice/>", nil, 1, []string{"neither EDIFACT nor X12"}},
		{"empty", "", nil, 1, []string{"neither EDIFACT nor X12"}},
		{"the other standard", ackIn, []string{"--type", "contrl"}, 1, []string{"does not answer"}},
		{"the other standard too", ackOrders("R1"), []string{"--type", "997"}, 1, []string{"does not answer"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "in.edi")
			write(t, file, c.in)
			r := edihub(nil, "", append(append([]string{"ack"}, c.args...), file)...)
			r.want(t, c.code, c.want...)
			piped := edihub(nil, c.in, append(append([]string{"ack"}, c.args...), "-")...)
			piped.want(t, c.code, c.want...)
			if strings.Contains(r.stdout, "edihub") || c.code == 0 && strings.Contains(r.stderr, "edihub:") {
				t.Errorf("stdout %q, stderr %q", r.stdout, r.stderr)
			}
		})
	}
}

func TestAckWrongUse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "in.edi")
	write(t, file, ackIn)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ack"}, "accepts 1 arg"},
		{[]string{"ack", "--type", "824", file}, "contrl"},
		{[]string{"ack", "--on-reject", "all", file}, "interchange"},
		{[]string{"ack", "--line-break", "cr", file}, "crlf"},
		{[]string{"ack", "--control-ref", "0", file}, "999999999"},
		{[]string{"ack", file + ".none"}, "no such file"},
		{[]string{"ack", filepath.Dir(file)}, "no regular file"},
	} {
		edihub(nil, "", c.args...).want(t, 2, c.want)
	}
	edihub(nil, "", "ack", "--help").want(t, 0, "Exit code", "edihub ack order.edi")
}
