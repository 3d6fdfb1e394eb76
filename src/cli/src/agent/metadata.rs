//! The metadata, as XML: what callers read to know which options and actions there are.

use super::options::{PARAMETERS, Parameter, ValueKind, long};

const ABOUT: &str = "fence_picket asks a Picket gateway to fence a node: the gateway switches its power off from the \
outside, proves that it is off, and only then lets its volumes go. 'off' and 'reboot' succeed only with that proof. After \
'off' the node stays off until 'on' drops the hold; after 'reboot' it is powered on again once everything is released. \
A fence that was begun goes on when this agent is ended, and who asks again joins it. Give it time: pcmk_off_timeout and \
pcmk_reboot_timeout of 300s or more.";

/// Text for an attribute or between tags.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter => out.push(letter),
        }
    }
    out
}

fn parameter(parameter: &Parameter) -> String {
    let short = parameter.short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
    let value = match parameter.kind {
        ValueKind::Boolean => String::new(),
        _ => format!("=[{}]", parameter.name),
    };
    let mixed = escaped(&format!("{short}--{}{value}", long(parameter)));
    let default = parameter.default.map(|default| format!(" default=\"{}\"", escaped(default)));
    let default = default.unwrap_or_default();
    let content = match parameter.kind {
        ValueKind::String => format!("<content type=\"string\"{default} />"),
        ValueKind::Second => format!("<content type=\"second\"{default} />"),
        ValueKind::Boolean => format!("<content type=\"boolean\"{default} />"),
        ValueKind::Select(values) => {
            let options: String =
                values.iter().map(|value| format!("\n\t\t\t<option value=\"{value}\" />")).collect();
            format!("<content type=\"select\"{default} >{options}\n\t\t</content>")
        }
    };
    let required = u8::from(parameter.required);
    // The older name of another parameter says so: callers prefer the newer one.
    let older = if parameter.name == "port" { " deprecated=\"1\"" } else { "" };
    let newer = if parameter.name == "plug" { " obsoletes=\"port\"" } else { "" };
    format!(
        "\t<parameter name=\"{}\" unique=\"0\" required=\"{required}\"{older}{newer}>\n\t\t<getopt mixed=\"{mixed}\" />\n\t\t{content}\n\t\t<shortdesc lang=\"en\">{}</shortdesc>\n\t</parameter>\n",
        parameter.name,
        escaped(parameter.about)
    )
}

/// All of it.
pub(super) fn xml() -> String {
    let parameters: String = PARAMETERS.iter().map(parameter).collect();
    let actions: String =
        ["off", "reboot", "status", "monitor", "metadata", "list", "list-status", "validate-all"]
            .iter()
            .map(|name| format!("\t<action name=\"{name}\" />\n"))
            .collect();
    format!(
        "<?xml version=\"1.0\" ?>\n<resource-agent name=\"fence_picket\" shortdesc=\"Fences through a Picket gateway, with proof\" >\n\
         <longdesc>{}</longdesc>\n<vendor-url></vendor-url>\n<parameters>\n{parameters}</parameters>\n\
         <actions>\n\t<action name=\"on\" automatic=\"0\"/>\n{actions}</actions>\n</resource-agent>\n",
        escaped(ABOUT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_stands_in_it_once_and_nothing_breaks_the_markup() {
        let xml = xml();
        for parameter in PARAMETERS {
            let name = format!("<parameter name=\"{}\"", parameter.name);
            assert_eq!(xml.matches(&name).count(), 1, "{name}");
        }
        let (open, close) = (xml.matches('<').count(), xml.matches('>').count());
        assert_eq!(open, close);
        assert!(xml.contains("obsoletes=\"port\"") && xml.contains("<action name=\"off\" />"));
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
