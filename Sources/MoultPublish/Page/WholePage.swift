/// A self-contained HTML page: without scripts, pictures or fonts from elsewhere.
package struct WholePage {
    private let title: Markup
    private let style: Markup
    private let header: Markup
    private let main: Markup

    package init(title: Markup, style: Markup = "", header: Markup, main: Markup) {
        (self.title, self.style, self.header, self.main) = (title, style, header, main)
    }

    package var html: String {
        let page: Markup = """
            <!DOCTYPE html>
            <html lang=en>
            <head>
            <meta charset=utf-8>
            <meta name=viewport content="width=device-width, initial-scale=1">
            <meta name=color-scheme content="light dark">
            <meta http-equiv=Content-Security-Policy content="default-src 'none'; style-src 'unsafe-inline'">
            <title>\(title)</title>
            <style>
            \(DiffPage.style)\(style)</style>
            </head>
            <body>
            <header>
            \(header)</header>
            <main>
            \(main)</main>
            </body>
            </html>

            """
        return page.text
    }
}
