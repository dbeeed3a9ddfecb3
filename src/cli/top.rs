//! `larder top`: the page for a terminal. Asks the daemon once a second and draws what it says; changes nothing.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Sparkline, Table};

use super::admin_client::AdminClient;
use super::answers::Status;
use super::status::{duration, share};
use super::table::tail;
use super::{ConfigFile, Exit, Failure};
use crate::clock::{Clock as _, SystemClock};
use crate::fetch::Traffic;
use crate::unit::{ByteSize, Rate};

/// How often the daemon is asked.
const TICK: Duration = Duration::from_secs(1);
/// Rates kept: as many as a wide screen has columns.
const KEPT: usize = 512;
/// The sources with their colours, as on the page.
const SOURCES: [(&str, Color); 3] =
    [("own cache", Color::Green), ("neighbours", Color::Blue), ("origin servers", Color::Yellow)];

/// What is on the screen.
#[derive(Default)]
struct Screen {
    status: Option<Status>,
    /// Why the daemon does not answer.
    trouble: Option<String>,
    /// Bytes a second by source, the newest last.
    rates: [VecDeque<u64>; 3],
    before: Option<(Instant, Traffic)>,
}

pub(super) fn run(node: &ConfigFile) -> Result<Exit, Failure> {
    if !std::io::stdout().is_terminal() {
        return Err(
            Failure::new(Exit::Usage, "this wants a terminal").hint("`larder status` prints the same once")
        );
    }
    let client = AdminClient::of(node)?;
    let mut screen = Screen::default();
    let failed = |error| Failure::new(Exit::Failed, format!("the terminal cannot be used: {error}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = watch(&client, &mut terminal, &mut screen);
    ratatui::restore();
    shown.map_err(failed).map(|()| Exit::Done)
}

fn watch(
    client: &AdminClient,
    terminal: &mut ratatui::DefaultTerminal,
    screen: &mut Screen,
) -> std::io::Result<()> {
    loop {
        match client.get::<Status>("/status") {
            Ok(status) => screen.take(status, SystemClock.instant()),
            Err(failure) => screen.trouble = Some(failure.sentence()),
        }
        terminal.draw(|frame| screen.draw(frame))?;
        let asked = SystemClock.instant();
        loop {
            let left = TICK.saturating_sub(SystemClock.instant().saturating_duration_since(asked));
            if !event::poll(left)? {
                break;
            }
            let event = event::read()?;
            if let Event::Key(key) = event
                && key.kind == KeyEventKind::Press
                && ends(key.code, key.modifiers)
            {
                return Ok(());
            }
            if let Event::Resize(..) = event {
                terminal.draw(|frame| screen.draw(frame))?;
            }
        }
    }
}

fn ends(code: KeyCode, modifiers: KeyModifiers) -> bool {
    matches!(code, KeyCode::Char('q') | KeyCode::Esc)
        || (code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL))
}

impl Screen {
    fn take(&mut self, status: Status, at: Instant) {
        let traffic = status.traffic;
        if let Some((before, was)) = self.before {
            let passed = at.saturating_duration_since(before).as_millis().max(1);
            let came = [
                traffic.bytes_from_cache.saturating_sub(was.bytes_from_cache),
                traffic.bytes_from_peers.saturating_sub(was.bytes_from_peers),
                traffic.bytes_from_origin.saturating_sub(was.bytes_from_origin),
            ];
            for (rates, bytes) in self.rates.iter_mut().zip(came) {
                rates.push_back(u64::try_from(u128::from(bytes) * 1000 / passed).unwrap_or(u64::MAX));
                while rates.len() > KEPT {
                    rates.pop_front();
                }
            }
        }
        self.before = Some((at, traffic));
        self.trouble = None;
        self.status = Some(status);
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let Some(status) = &self.status else {
            let text = self.trouble.as_deref().unwrap_or("asking the daemon…");
            frame.render_widget(Paragraph::new(text).red(), frame.area());
            return;
        };
        let running = u16::try_from(status.transfers.len().clamp(1, 12)).unwrap_or(12);
        let [head, traffic, transfers, peers, foot] = Layout::vertical([
            Constraint::Length(3),
            Constraint::Length(10),
            Constraint::Length(running + 3),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.head(frame, head, status);
        self.traffic(frame, traffic, status);
        transfers_table(frame, transfers, status);
        peers_table(frame, peers, status);
        frame.render_widget(Line::from(" q ends").dim(), foot);
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect, status: &Status) {
        let health = match &self.trouble {
            Some(trouble) => Span::from(trouble.as_str()).red(),
            None if status.health.status == "ok" => Span::from("ok").green(),
            None => {
                Span::from(format!("{}: {}", status.health.status, status.health.reasons.join("; "))).red()
            }
        };
        let name = Span::from(status.name.as_str()).add_modifier(Modifier::BOLD);
        let about = format!(
            "  larder {}, site {}, up {}  ",
            status.version,
            status.site,
            duration(status.uptime_seconds)
        );
        let saved = format!(
            "saved {} today, {} this week, {} ever",
            ByteSize(status.saved.today),
            ByteSize(status.saved.week),
            ByteSize(status.saved.ever)
        );
        let lines = vec![Line::from(vec![name, Span::from(about), health]), Line::from(saved)];
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn traffic(&self, frame: &mut Frame<'_>, area: Rect, status: &Status) {
        let block = Block::bordered().title(" bytes a second ");
        let inside = block.inner(area);
        frame.render_widget(block, area);
        let [graph, fill] = Layout::vertical([Constraint::Min(3), Constraint::Length(1)]).areas(inside);
        let rows: [Rect; 3] = Layout::vertical([Constraint::Fill(1); 3]).areas(graph);
        let most = self.rates.iter().flatten().copied().max().unwrap_or(0).max(1024);
        let sums = [
            status.traffic.bytes_from_cache,
            status.traffic.bytes_from_peers,
            status.traffic.bytes_from_origin,
        ];
        let all = sums.iter().fold(0, |sum: u64, more| sum.saturating_add(*more));
        for (((row, rates), (name, colour)), sum) in rows.into_iter().zip(&self.rates).zip(SOURCES).zip(sums)
        {
            let [label, line] = Layout::horizontal([Constraint::Length(34), Constraint::Min(4)]).areas(row);
            let now = Rate(rates.back().copied().unwrap_or(0));
            let first =
                Line::from(format!("{name:15}{:>9} {:>5}", ByteSize(sum).to_string(), share(sum, all)))
                    .fg(colour);
            let second = Line::from(format!("{:15}{}", "", speed(now))).dim();
            frame.render_widget(Paragraph::new(vec![first, second]), label);
            let shown: Vec<u64> = rates.iter().rev().take(line.width.into()).rev().copied().collect();
            let padding = usize::from(line.width).saturating_sub(shown.len());
            let data: Vec<u64> = std::iter::repeat_n(0, padding).chain(shown).collect();
            frame.render_widget(
                Sparkline::default().data(data).max(most).style(Style::new().fg(colour)),
                line,
            );
        }
        let held = &status.cache;
        let part =
            u16::try_from(u128::from(held.bytes) * 100 / u128::from(held.max_bytes.max(1))).unwrap_or(100);
        let label =
            format!("cache {} of {}, {} blobs", ByteSize(held.bytes), ByteSize(held.max_bytes), held.blobs);
        frame.render_widget(Gauge::default().percent(part.min(100)).label(label).fg(Color::Green), fill);
    }
}

fn speed(rate: Rate) -> String {
    if rate.0 == 0 { "–".to_owned() } else { format!("{}/s", ByteSize(rate.0)) }
}

fn transfers_table(frame: &mut Frame<'_>, area: Rect, status: &Status) {
    // what the other columns, the spaces between them and the border leave
    let room = usize::from(area.width).saturating_sub(16 + 22 + 16 + 7 + 4 + 2);
    let row = |transfer: &super::answers::Transfer| {
        let how_far = match transfer.size {
            Some(size) => format!("{} of {}", ByteSize(transfer.received), ByteSize(size)),
            None => ByteSize(transfer.received).to_string(),
        };
        let bar = transfer.size.map_or(String::new(), |size| bar(transfer.received, size));
        let cells =
            [tail(&transfer.url, room), transfer.source.clone(), how_far, bar, transfer.readers.to_string()];
        Row::new(cells)
    };
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(16),
        Constraint::Length(22),
        Constraint::Length(16),
        Constraint::Length(7),
    ];
    let title = format!(" transfers: {} ", status.transfers.len());
    let table = Table::new(status.transfers.iter().map(row), widths)
        .header(Row::new(["WHAT", "FROM", "RECEIVED", "", "READERS"]).dim())
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn peers_table(frame: &mut Frame<'_>, area: Rect, status: &Status) {
    let row = |peer: &crate::admin::PeerView| {
        Row::new([
            plain(&peer.name),
            peer.address.clone(),
            format!("{:.0} s ago", peer.last_seen_seconds),
            ByteSize(peer.bytes_received).to_string(),
            ByteSize(peer.bytes_given).to_string(),
            peer.version.clone(),
        ])
    };
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(24),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
    ];
    let title = match &status.peers {
        Some(peers) => format!(" neighbours: {}, refused addresses: {} ", peers.len(), status.bans.len()),
        None => " neighbours and transfers: for administrators ".to_owned(),
    };
    let table = Table::new(status.peers().iter().map(row), widths)
        .header(Row::new(["NAME", "ADDRESS", "HEARD", "GOT", "GAVE", "VERSION"]).dim())
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

/// A bar of fourteen places.
fn bar(part: u64, all: u64) -> String {
    const WIDTH: u64 = 14;
    let full = u128::from(part.min(all)) * u128::from(WIDTH) / u128::from(all.max(1));
    let full = usize::try_from(full).unwrap_or(0);
    format!("{}{}", "█".repeat(full), "░".repeat(14_usize.saturating_sub(full)))
}

/// Nothing of a name reaches the terminal as a command to it.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn status(cache: u64) -> Status {
        serde_json::from_value(serde_json::json!({
            "version": "0.1.0", "node": "n", "name": "box1", "site": "lab", "uptime_seconds": 3700,
            "health": {"status": "ok", "reasons": []},
            "cache": {"blobs": 3, "bytes": 1024, "max_bytes": 4096, "pinned": 1},
            "saved": {"today": 1024, "week": 2048, "ever": 4096},
            "traffic": {"requests": 4, "bytes_to_clients": 300, "bytes_from_cache": cache, "bytes_from_peers": 0,
                "bytes_from_origin": 0, "bytes_to_peers": 0, "bytes_discarded": 0, "bytes_tunnelled": 0},
            "peers": [{"node": "00000000-0000-8000-8000-000000000000", "name": "box2\u{1b}[31m", "address": "10.0.0.7:8096",
                "last_seen_seconds": 1.4, "version": "0.1.0", "bytes_received": 2048}],
            "transfers": [{"id": "1", "url": "http://e/x.iso", "source": "origin", "received": 50, "size": 100, "readers": 2}],
            "bans": []
        }))
        .unwrap()
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn shows_what_goes_on_and_fits_any_screen() {
        let (mut screen, now) = (Screen::default(), SystemClock.instant());
        assert!(drawn(&screen, 80, 24).contains("asking"));
        screen.take(status(0), now);
        screen.take(status(5 << 20), now + Duration::from_secs(1));
        assert_eq!(screen.rates[0], [5 << 20]);
        let text = drawn(&screen, 100, 30);
        for part in [
            "box1",
            "up 1 h 1 min",
            "saved 1KiB today",
            "5MiB/s",
            "x.iso",
            "███████░░░░░░░",
            "box2?[31m",
            "2KiB",
        ] {
            assert!(text.contains(part), "{part} not in\n{text}");
        }
        for (width, height) in [(1, 1), (20, 5), (300, 100)] {
            drawn(&screen, width, height);
        }
        screen.trouble = Some("it is gone".to_owned());
        assert!(drawn(&screen, 100, 30).contains("it is gone"));
    }
}
