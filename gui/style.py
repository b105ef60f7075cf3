"""Puts a theme on the whole application: palette, fonts and one short style sheet."""

from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication

from gui.theme import Theme


def apply_theme(app: QApplication, theme: Theme) -> None:
    """Make every standard widget follow the theme; cheap enough for each Ctrl +."""
    font = QFont(app.font())
    font.setPixelSize(theme.font_body)
    app.setFont(font)
    app.setPalette(_palette(theme))
    app.setStyleSheet(_style_sheet(theme))


def _palette(theme: Theme) -> QPalette:
    role = QPalette.ColorRole
    palette = QPalette()
    for colour, roles in (
        (theme.background, (role.Window,)),
        (theme.surface, (role.Base, role.ToolTipBase)),
        (theme.raised, (role.Button, role.AlternateBase)),
        (theme.text, (role.WindowText, role.Text, role.ButtonText, role.ToolTipText)),
        (theme.text_dim, (role.PlaceholderText,)),
        (theme.accent, (role.Highlight, role.Link)),
        (theme.on_accent, (role.HighlightedText,)),
        (theme.line, (role.Mid, role.Dark, role.Light, role.Midlight)),
    ):
        for each in roles:
            palette.setColor(each, QColor(colour))
    for each in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, each, QColor(theme.text_dim))
    return palette


def _style_sheet(theme: Theme) -> str:
    unit, stroke = theme.unit, max(1, round(theme.stroke))
    return f"""
    QMainWindow::separator {{ background: {theme.background}; width: {unit}px; height: {unit}px; }}
    QDockWidget {{ color: {theme.text_dim}; font-weight: 600; }}
    QDockWidget::title {{
        background: {theme.background}; padding: {unit // 2}px {unit * 2}px; text-align: left;
    }}
    QToolBar {{
        background: {theme.background}; border: none; spacing: {unit}px; padding: {unit}px;
    }}
    QToolBar QToolButton, QPushButton {{
        background: {theme.surface}; border: {stroke}px solid {theme.line};
        border-radius: {unit}px; padding: {unit}px {unit * 2}px; color: {theme.text};
    }}
    QToolBar QToolButton:checked, QPushButton:checked {{
        background: {theme.accent}; color: {theme.on_accent}; border-color: {theme.accent};
    }}
    QToolBar QToolButton:disabled, QPushButton:disabled {{ color: {theme.text_dim}; }}
    QToolBar QToolButton:hover, QPushButton:hover {{ border-color: {theme.accent}; }}
    QToolBar QToolButton:focus, QPushButton:focus {{ border-color: {theme.accent}; }}
    QCheckBox::indicator {{
        width: {unit * 3}px; height: {unit * 3}px; border: {stroke}px solid {theme.text_dim};
        background: {theme.surface};
    }}
    QCheckBox::indicator:checked {{ background: {theme.accent}; border-color: {theme.text}; }}
    QCheckBox::indicator:focus {{ border-color: {theme.accent}; }}
    QMenuBar, QMenu, QStatusBar {{ background: {theme.background}; color: {theme.text}; }}
    QMenu::item:selected, QMenuBar::item:selected {{
        background: {theme.accent}; color: {theme.on_accent};
    }}
    QTabBar {{ qproperty-drawBase: 0; }}
    QTabBar::tab {{
        background: {theme.background}; color: {theme.text_dim};
        padding: {unit}px {unit * 2}px; border: none;
    }}
    QTabBar::tab:selected {{
        color: {theme.text}; border-bottom: {stroke + 1}px solid {theme.accent};
    }}
    QToolTip {{
        background: {theme.surface}; color: {theme.text}; border: 1px solid {theme.line};
        padding: {unit}px;
    }}
    """
