package partner

import "time"

const day = 24 * time.Hour

// defaultAgreement is what holds for a key that neither the agreement nor the block "defaults"
// names.
func defaultAgreement() *Agreement {
	return &Agreement{
		Split:     "messages",
		OnReject:  "message",
		OnInvalid: "reject",
		Validate: Validate{
			Level:         "tables",
			WarnOnly:      []string{"code", "length", "unused"},
			TrailerErrors: "reject",
			Rules:         []string{"en16931", "peppol"},
			Severity:      map[string]string{"CUSTOMIZATION_UNKNOWN": "warning"},
		},
		Duplicates: Duplicates{
			Interchange: Window{Window: 90 * day, Same: "repeat-answer", Other: "reject"},
			Document:    Window{Window: 400 * day, Same: "skip", Other: "hold"},
			Content:     Window{Window: 30 * day, Same: "skip"},
		},
		Usage:    "production",
		Ordering: Ordering{By: ByPartner, Advance: "delivered"},
		OnPoison: Block,
		MaxAge:   day,
		Acks: Acks{
			ContrlReceipt:    "never",
			ContrlAnswer:     "always",
			TA1:              "on-request",
			X12Type:          "auto",
			X12Answer:        "always",
			X12AcceptedLoops: true,
			UBL:              "mlr-errors",
			Wait:             time.Hour,
		},
	}
}
